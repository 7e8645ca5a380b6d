package kube

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/text"
)

// connectPatience is how long the API server may take to answer with its version, as long
// as kubectl waits for it. client-go gives each TLS handshake 10 s of that.
const connectPatience = 30 * time.Second

// Limits on requests to the API server, high enough to make thousands of Services.
const (
	requestsPerSecond = 400
	requestBurst      = 800
)

// Cluster is a connection to a cluster's API server.
type Cluster struct {
	Config  *rest.Config
	Client  Client
	Dynamic dynamic.Interface
	Mapper  meta.ResettableRESTMapper // caches the kinds; after Reset it asks for unknown kinds again
	Version *version.Info
	// Context is the kubeconfig's context, or "" inside a cluster.
	Context string
	Options Options

	// Exec opens a stream to a command in a container of a pod; tests replace it.
	Exec func(namespace, pod, container string, argv []string) agent.Stream

	program string // this program in images that have it; tests replace it
	dir     string // the pods' folder in memory; tests replace it

	cargo *cargo // what all copies of a connection share
	guard *guard
}

// Connect finds the cluster and asks for its version. Errors: *UsageError if the given
// kubeconfig does not exist or can't be read, *text.UnknownError if it lacks the context,
// *arena.Unsupported if there is no kubeconfig, or if the cluster does not answer or
// refuses the credentials.
func Connect(ctx context.Context, o Options) (*Cluster, error) {
	config, kubeContext, err := restConfig(o)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = requestsPerSecond, requestBurst
	config.UserAgent = "cnibench"
	config.WarningHandler = rest.NoWarnings{} // only errors matter here
	cl := &Cluster{Config: config, Context: kubeContext, Options: o, program: Program, dir: dir, cargo: newCargo(), guard: &guard{argv: o.Guard}}
	cl.Exec = cl.stream
	asked := rest.CopyConfig(config)
	asked.Timeout = o.RequestTimeout
	if cl.Client, err = newClient(asked); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if cl.Dynamic, err = dynamic.NewForConfig(limitRequests(asked)); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	cl.Mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(cl.Client.Discovery()))
	patience, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	got := make(chan error, 1)
	var last atomic.Pointer[error] // of a try that took too long
	go func() {                    // ServerVersion takes no context
		for {
			found, err := cl.Client.Discovery().ServerVersion()
			if !utilnet.IsTimeout(err) || patience.Err() != nil {
				cl.Version = found
				got <- err
				return
			}
			if last.Swap(&err) == nil {
				o.log("%v; asked again for up to %v", err, connectPatience)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	select {
	case err = <-got:
	case <-patience.Done():
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connect to the cluster at %s: %w", config.Host, context.Cause(ctx))
		}
		err = fmt.Errorf("no answer within %v", connectPatience)
		if why := last.Load(); why != nil {
			err = fmt.Errorf("%w: %w", err, *why)
		}
		return nil, cl.unreachable(err)
	}
	if err != nil {
		return nil, cl.explainRefusal(err)
	}
	return cl, nil
}

// restConfig reads the kubeconfig, or the pod's own service account.
func restConfig(o Options) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if o.Kubeconfig != "" {
		if _, err := os.Stat(o.Kubeconfig); errors.Is(err, fs.ErrNotExist) {
			return nil, "", &UsageError{fmt.Sprintf("--kubeconfig %s: there is no such file", o.Kubeconfig)}
		}
		rules.ExplicitPath = o.Kubeconfig
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, "", &UsageError{fmt.Sprintf("kubeconfig: %v", err)}
	}
	if o.Context != "" && raw.Contexts[o.Context] == nil {
		return nil, "", text.Unknown("context", o.Context, slices.Sorted(maps.Keys(raw.Contexts)))
	}
	name := o.Context
	if name == "" {
		name = raw.CurrentContext
	}
	config, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, "", &arena.Unsupported{
			Reason: "no cluster: no --kubeconfig, $KUBECONFIG or ~/.kube/config names one",
			Remedy: "give --kubeconfig FILE; try it with: kubectl --kubeconfig FILE get nodes",
		}
	case err != nil:
		return nil, "", &UsageError{fmt.Sprintf("kubeconfig: %v", err)}
	}
	return config, name, nil
}

// CheckContext returns an error if the kubeconfig lacks the context or cannot be read. It
// contacts no cluster.
func CheckContext(o Options) error {
	_, _, err := restConfig(o)
	return err
}

// Contexts returns the names of the contexts of the options' kubeconfig.
func Contexts(o Options) []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	raw, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
}

// explainRefusal returns what the error of a first request means for the user.
func (cl *Cluster) explainRefusal(err error) error {
	var invalid x509.CertificateInvalidError
	switch {
	case apierrors.IsUnauthorized(err):
		return &arena.Unsupported{
			Reason: fmt.Sprintf("the cluster at %s refuses the credentials, which may have expired: %v", cl.Config.Host, err),
			Remedy: cl.remedy("sign in again"),
		}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return &arena.Unsupported{
			Reason: fmt.Sprintf("a certificate of the cluster at %s has expired: %v", cl.Config.Host, err),
			Remedy: cl.remedy("renew it"),
		}
	case apierrors.IsForbidden(err):
		return &arena.Unsupported{
			Reason: fmt.Sprintf("the cluster at %s answers, but may not be asked for its version: %v", cl.Config.Host, err),
			Remedy: cl.remedy("sign in as somebody who may use it"),
		}
	}
	return cl.unreachable(err)
}

func (cl *Cluster) unreachable(err error) error {
	return &arena.Unsupported{
		Reason: fmt.Sprintf("the cluster at %s does not answer: %v", cl.Config.Host, err),
		Remedy: cl.remedy("check its address and the way there"),
	}
}

// remedy returns the text with the kubectl command that must work afterwards.
func (cl *Cluster) remedy(first string) string {
	command := "kubectl"
	if cl.Options.Kubeconfig != "" {
		command += " --kubeconfig " + cl.Options.Kubeconfig
	}
	if cl.Context != "" {
		command += " --context " + cl.Context
	}
	return fmt.Sprintf("%s until `%s get nodes` works", first, command)
}
