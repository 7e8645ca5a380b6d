package kube

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/arena"
)

var created = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

// What is asked of the cluster, whole, to be read by who must allow it.
func TestObjects(t *testing.T) {
	with := func(o Options) *Cluster { return &Cluster{Options: o, cargo: newCargo()} }
	o := Options{Image: "example.org/cnibench:1", PullPolicy: "Never", CPU: "2", Memory: "1Gi", Tolerations: []string{"dedicated=gpu:NoSchedule"}}
	at := &node{name: "node2", realName: "worker-b"}
	pod, err := podPlan{namespace: "cnibench-x", name: "node2-pod1", node: at, labels: map[string]string{"app": "server"}, ports: []arena.NamedPort{{Name: "web", Protocol: arena.TCP, Number: 80}}}.object("cnibench-x", with(o))
	if err != nil {
		t.Fatal(err)
	}
	hostPod, err := podPlan{namespace: "cnibench-x", name: "node2", node: at, hostNetwork: true, privileged: true}.object("cnibench-x", with(Options{Image: o.Image}))
	if err != nil {
		t.Fatal(err)
	}
	machinePod, err := podPlan{namespace: "cnibench-x", name: "node2", node: at, onNode: true}.object("cnibench-x", with(Options{Image: o.Image}))
	if err != nil {
		t.Fatal(err)
	}
	objects := []any{namespaceFor("cnibench-x", "cnibench-x", "privileged", nil), pod, hostPod, machinePod}
	server := netip.MustParseAddr("10.1.2.3")
	other := netip.MustParseAddr("fd00::1")
	for _, kind := range []string{NodePort, Headless} {
		service, slices := serviceFor("cnibench-x", "cnibench-x", "server", kind, []backend{
			{arena.TCP, 5201, netip.AddrPortFrom(server, 5201), "worker-b"},
			{arena.UDP, 5201, netip.AddrPortFrom(server, 5201), "worker-b"},
			{arena.TCP, 80, netip.AddrPortFrom(other, 8080), "worker-a"},
		})
		objects = append(objects, service)
		if kind == NodePort {
			for _, s := range slices {
				objects = append(objects, s)
			}
		}
	}
	var out bytes.Buffer
	for _, object := range objects {
		b, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(b)
	}
	golden(t, "objects.yaml", out.Bytes())
}

func TestRBAC(t *testing.T) {
	for file, o := range map[string]Options{"rbac.yaml": {}, "rbac-install.yaml": {Namespace: "bench", Install: &installer{}}} {
		b, err := RBAC(o)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, file, b)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"CPU":         {Image: "i", CPU: "two"},
		"memory":      {Image: "i", Memory: "-1Gi"},
		"tolerations": {Image: "i", Tolerations: []string{":"}},
	} {
		t.Run(name, func(t *testing.T) { _ = usageText(t, o.check()) })
	}
	for name, o := range map[string]Options{
		"service":     {Image: "i", Service: "clusterIP"},
		"pull policy": {Image: "i", PullPolicy: "never"},
	} {
		if err := o.check(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
