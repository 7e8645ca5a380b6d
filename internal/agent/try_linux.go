package agent

import "github.com/cnibench/cnibench/internal/tune"

// trialMachine returns the machine whose values a trial may change: the agent's own network
// namespace, which is thrown away, or if own is set the machine's first one.
func trialMachine(own bool) (*tune.Machine, error) {
	if own {
		return tune.LocalMachine()
	}
	return tune.ThisNamespace(false)
}
