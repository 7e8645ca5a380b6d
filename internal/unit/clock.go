package unit

// UserHZ is what the kernel counts a second in where it shows times to programs, as in
// /proc/stat (sysconf(_SC_CLK_TCK)): fixed by its ABI on every architecture that Go
// compiles for.
const UserHZ = 100
