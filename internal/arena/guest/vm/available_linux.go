package vm

// Available returns nil if QEMU is installed, else an *Unsupported. Find says whether there is
// a kernel to boot.
func Available() error { return have(program) }
