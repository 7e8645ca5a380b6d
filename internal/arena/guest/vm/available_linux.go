package vm

// Available says nil where QEMU is installed, else *Unsupported. Whether there
// is a kernel for it, Find says.
func Available() error { return have(program) }
