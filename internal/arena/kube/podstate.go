package kube

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
)

// imageTroubles are the kubelet's reasons for an image that can't be pulled, each with a
// remedy. A pod with such a reason is given up at once.
var imageTroubles = map[string]string{
	"ErrImagePull":      "give an image that the nodes can pull with --image, or import it on every node and add --pull-policy Never",
	"ImagePullBackOff":  "give an image that the nodes can pull with --image, or import it on every node and add --pull-policy Never",
	"ErrImageNeverPull": "import the image on every node that is used, or let the nodes pull it: --pull-policy IfNotPresent",
	"InvalidImageName":  "give the image as REGISTRY/NAME:TAG with --image",
}

// podRuns reports whether the pod runs. It returns an error if the pod will never run.
func podRuns(p *corev1.Pod) (running bool, err error) {
	where := fmt.Sprintf("pod %s on node %s", p.Name, p.Spec.NodeName)
	if p.DeletionTimestamp != nil {
		return false, fmt.Errorf("%s is being deleted by somebody else%s", where, because(p.Status.Reason, p.Status.Message))
	}
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		t := findTermination(p)
		if t != nil && strings.Contains(t.Message, agent.ErrAbandoned.Error()) {
			return false, fmt.Errorf("%s has ended: %s, because its lease was not renewed: this program was stopped or away from the API server; the next round makes the pod anew", where, strings.TrimSpace(t.Message))
		}
		if t != nil && t.Reason == "OOMKilled" {
			return false, fmt.Errorf("%s was killed because it took more memory than it may: give more with --pod-memory, or use nodes with more; the next round makes the pod anew", where)
		}
		if t != nil && p.Status.Reason == "" {
			return false, &arena.Unsupported{
				Reason: fmt.Sprintf("%s ended with exit code %d%s", where, t.ExitCode, because(t.Reason, t.Message)),
				Remedy: fmt.Sprintf("see that the image %s has a shell and is for the node's architecture, or give another with --image", p.Spec.Containers[0].Image),
			}
		}
		return false, fmt.Errorf("%s has ended%s", where, because(p.Status.Reason, p.Status.Message))
	}
	for _, c := range p.Status.ContainerStatuses {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		if remedy, trouble := imageTroubles[w.Reason]; trouble {
			return false, &arena.Unsupported{
				Reason: fmt.Sprintf("the image %s does not come to node %s%s", p.Spec.Containers[0].Image, p.Spec.NodeName, because(w.Reason, w.Message)),
				Remedy: remedy,
			}
		}
		if slices.Contains([]string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}, w.Reason) {
			return false, &arena.Unsupported{
				Reason: where + " does not start" + because(w.Reason, w.Message),
				Remedy: fmt.Sprintf("see that the image %s has a shell (sh), such as busybox, or give another with --image", p.Spec.Containers[0].Image),
			}
		}
	}
	return p.Status.Phase == corev1.PodRunning && len(podAddrs(p)) > 0, nil
}

func findTermination(p *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			return c.State.Terminated
		}
	}
	return nil
}

// because returns what the cluster says is the reason, after a colon; "" without one.
func because(reason, message string) string {
	message = strings.TrimSpace(message)
	if text := cmp.Or(message, reason); text != "" {
		if reason != "" && message != "" {
			return fmt.Sprintf(": %s: %s", reason, message)
		}
		return ": " + text
	}
	return ""
}

// podAddrs returns the pod's addresses, IPv4 first.
func podAddrs(p *corev1.Pod) []netip.Addr {
	var v4, v6 []netip.Addr
	for _, ip := range p.Status.PodIPs {
		a, err := netip.ParseAddr(ip.IP)
		switch {
		case err != nil:
		case a.Is4():
			v4 = append(v4, a)
		default:
			v6 = append(v6, a)
		}
	}
	return append(v4, v6...)
}
