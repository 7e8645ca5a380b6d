package result

// EmulatedKey is the environment key that is "true" when the kernel ran on an
// emulated CPU.
const EmulatedKey = "arena.emulated"
