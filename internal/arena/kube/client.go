package kube

import (
	"cmp"
	"errors"
	"time"

	"k8s.io/client-go/discovery"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryv1 "k8s.io/client-go/kubernetes/typed/discovery/v1"
	networkingv1 "k8s.io/client-go/kubernetes/typed/networking/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Client has the API groups that cnibench uses. client-go's kubernetes.Interface
// satisfies it, and its fake for tests; linking all fifty groups would add 100
// packages to every build.
type Client interface {
	Discovery() discovery.DiscoveryInterfaces
	AppsV1() appsv1.AppsV1Interface
	AuthorizationV1() authorizationv1.AuthorizationV1Interface
	CoordinationV1() coordinationv1.CoordinationV1Interface
	CoreV1() corev1.CoreV1Interface
	DiscoveryV1() discoveryv1.DiscoveryV1Interface
	NetworkingV1() networkingv1.NetworkingV1Interface
}

// groups implements Client.
type groups struct {
	discovery     *discovery.DiscoveryClient
	apps          *appsv1.AppsV1Client
	authorization *authorizationv1.AuthorizationV1Client
	coordination  *coordinationv1.CoordinationV1Client
	core          *corev1.CoreV1Client
	discoveryV1   *discoveryv1.DiscoveryV1Client
	networking    *networkingv1.NetworkingV1Client
}

// requestTimeout ends a request that the server does not answer, e.g. because an admission
// webhook hangs. No request of these clients is a watch or a stream.
const requestTimeout = 30 * time.Second

// limitRequests returns the configuration with requestTimeout. Streams use the configuration
// without it.
func limitRequests(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Timeout = cmp.Or(config.Timeout, requestTimeout)
	return config
}

// newClient makes the clients of all groups. They share connections and the limit on the
// rate of requests.
func newClient(config *rest.Config) (Client, error) {
	config = limitRequests(config)
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	g := &groups{}
	var failed [7]error
	g.discovery, failed[0] = discovery.NewDiscoveryClientForConfigAndClient(config, transport)
	g.apps, failed[1] = appsv1.NewForConfigAndClient(config, transport)
	g.authorization, failed[2] = authorizationv1.NewForConfigAndClient(config, transport)
	g.core, failed[3] = corev1.NewForConfigAndClient(config, transport)
	g.discoveryV1, failed[4] = discoveryv1.NewForConfigAndClient(config, transport)
	g.networking, failed[5] = networkingv1.NewForConfigAndClient(config, transport)
	g.coordination, failed[6] = coordinationv1.NewForConfigAndClient(config, transport)
	return g, errors.Join(failed[:]...)
}

func (g *groups) Discovery() discovery.DiscoveryInterfaces                  { return g.discovery }
func (g *groups) AppsV1() appsv1.AppsV1Interface                            { return g.apps }
func (g *groups) AuthorizationV1() authorizationv1.AuthorizationV1Interface { return g.authorization }
func (g *groups) CoordinationV1() coordinationv1.CoordinationV1Interface    { return g.coordination }
func (g *groups) CoreV1() corev1.CoreV1Interface                            { return g.core }
func (g *groups) DiscoveryV1() discoveryv1.DiscoveryV1Interface             { return g.discoveryV1 }
func (g *groups) NetworkingV1() networkingv1.NetworkingV1Interface          { return g.networking }
