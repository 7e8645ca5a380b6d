// Command guest is the smallest program that runs a command in a guest, and
// the guest's init: guest IMAGE MODULES MEMORY COMMAND… For the tests of vm,
// which can be built so that no guest could run them. The environment has the
// rest: LIMIT, CPUS and NICS.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
)

func main() {
	if vm.IsInit() {
		vm.Init()
	}
	kernel, err := vm.Open(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	mebibytes, _ := strconv.ParseInt(os.Args[3], 10, 64)
	dir, _ := os.Getwd()
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGTERM)
	signals := make(chan vm.Signal)
	go func() {
		for s := range received {
			signals <- s.(syscall.Signal)
		}
	}()
	limit, _ := time.ParseDuration(os.Getenv("LIMIT"))
	cpus, _ := strconv.Atoi(os.Getenv("CPUS"))
	code, err := vm.Run(context.Background(), vm.Config{
		Kernel: kernel, Accel: vm.AccelTCG, CPUs: cpus, NICs: strings.Fields(os.Getenv("NICS")), Memory: mebibytes << 20, Argv: os.Args[4:], Env: os.Environ(), Dir: dir,
		Writable: []string{dir}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals, Timeout: limit,
	})
	var ended *vm.Interrupted
	if errors.As(err, &ended) {
		os.Exit(ended.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(98)
	}
	os.Exit(code)
}
