//go:build !linux

package tune

// LocalMachine returns a *NotApplicable: all settings are those of Linux.
func LocalMachine() (*Machine, error) {
	return nil, &NotApplicable{Reason: "host settings are read and set on Linux only", Remedy: "run it on the machine to tune"}
}

// ThisNamespace returns a *NotApplicable, like LocalMachine.
func ThisNamespace(bool) (*Machine, error) { return LocalMachine() }
