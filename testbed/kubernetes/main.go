// Kubernetes is every Kubernetes program that a test bed runs, in one file: the
// name under which the file is started chooses the program. One program is
// linked once where six are linked six times. It is what the main packages
// below k8s.io/kubernetes/cmd are; it is this file.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // CronJobs have time zones

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	name := filepath.Base(os.Args[0])
	if name == "kubectl" {
		_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
		util.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()))
		return
	}
	program, found := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllers.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
		"kube-proxy":              proxy.NewProxyCommand,
	}[name]
	if !found {
		fmt.Fprintf(os.Stderr, "%s is the name of no program of Kubernetes\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(program()))
}
