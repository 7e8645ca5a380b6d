//go:build !linux

package tune

// Local is not to be had: the settings are Linux's.
func Local() (*Machine, error) {
	return nil, &NotApplicable{Reason: "host settings are Linux's", Remedy: "run it on the machine to tune"}
}

// Here is not to be had either.
func Here(bool) (*Machine, error) { return Local() }
