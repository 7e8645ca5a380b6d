//go:build linux

package all

import (
	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/text"
)

// LookupTransport finds a transport or an extra by name.
func LookupTransport(name string) (wire.Transport, error) {
	return text.Find("lab transport", name, Transports(), func(x wire.Transport) string { return x.Name })
}

// LookupAttach finds an attachment by name.
func LookupAttach(name string) (wire.Attach, error) {
	return text.Find("lab attachment", name, Attachments(), func(x wire.Attach) string { return x.Name })
}

// LookupService finds a Service mechanism by name.
func LookupService(name string) (wire.Service, error) {
	return text.Find("lab service", name, Services(), func(x wire.Service) string { return x.Name })
}
