// Command cnibench measures what a pod network costs, proves what it does, and
// helps people choose and tune one. Next: internal/cli.
package main

import (
	"os"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/cli"
)

func main() {
	if vm.IsInit() {
		vm.Init()
	}
	os.Exit(cli.Main(os.Args[1:]))
}
