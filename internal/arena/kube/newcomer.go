package kube

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cnibench/cnibench/internal/arena"
)

// newcomer is the first process of a pod that connects to address $1, port $2, an echo, for $3
// hundredths of a second, and leaves as its last words: how often it tried, how often it
// reached the echo, and when the first and the last that did had begun. It needs nothing
// but the image's shell with nc (busybox) or bash (Debian): this program may not be there yet.
// The first tries follow each other at once.
const newcomer = `addr=$1 port=$2 life=$3
end() { echo "$*" >/dev/termination-log; exit; }
if command -v nc >/dev/null; then
	try() { [ "$(echo x | nc -w 1 "$addr" "$port")" = x ]; }
elif command -v bash >/dev/null; then
	try() { timeout 1 bash -c 'exec 3<>"/dev/tcp/$0/$1" && echo x >&3 && read -r y <&3 && [ "$y" = x ]' "$addr" "$port"; }
else
	end the image has neither nc nor bash
fi
now() { read -r up rest </proc/uptime; t=${up%.*}${up#*.}; }
now
start=$t tried=0 reached=0 first=0 last=0
while now; begun=$((t - start)); [ $begun -lt "$life" ]; do
	tried=$((tried + 1))
	if try 2>/dev/null; then
		[ $reached -gt 0 ] || first=$begun
		last=$begun reached=$((reached + 1))
	fi
	[ $tried -lt 100 ] || sleep 0.1 2>/dev/null || sleep 1
done
end $tried $reached $first $last
`

// Newcomer implements arena.Sandbox.
func (s *sandbox) Newcomer(ctx context.Context, namespace, beside, name string, labels map[string]string, target netip.AddrPort, life time.Duration) (a arena.Attempts, err error) {
	e := s.pods[[2]string{namespace, beside}]
	if e == nil {
		return a, fmt.Errorf("the sandbox has no pod %s/%s", namespace, beside)
	}
	labels = maps.Clone(labels)
	labels[labelSandbox] = s.id
	plan := podPlan{
		namespace: e.namespace, name: name, node: e.node, labels: labels,
		command: []string{"sh", "-c", newcomer, "sh", target.Addr().String(), fmt.Sprint(target.Port()), fmt.Sprint(int(life / (10 * time.Millisecond)))},
	}
	if err := s.net.cl.makePod(ctx, s.net.run, plan); err != nil {
		return a, err
	}
	var said string
	err = wait.PollUntilContextTimeout(ctx, upPoll, upPatience+life, true, func(ctx context.Context) (bool, error) {
		p, err := ask(ctx, s.net.cl, "look at pod "+name, func(ctx context.Context) (*corev1.Pod, error) {
			return s.net.cl.Client.CoreV1().Pods(e.namespace).Get(ctx, name, metav1.GetOptions{})
		})
		if err != nil {
			return false, err
		}
		if t := findTermination(p); t != nil && t.ExitCode == 0 {
			said = t.Message
			return true, nil
		}
		_, err = podRuns(p)
		return false, err
	})
	if err == nil {
		a, err = readAttempts(said)
	}
	if removeErr := s.net.cl.removePod(context.WithoutCancel(ctx), e.namespace, name); err == nil {
		err = removeErr
	}
	return a, err
}

// readAttempts reads the last words of a newcomer.
func readAttempts(text string) (a arena.Attempts, err error) {
	var first, last int
	if _, err := fmt.Sscanf(text, "%d %d %d %d\n", &a.Tried, &a.Reached, &first, &last); err != nil || a.Reached < 0 || a.Reached > a.Tried || first < 0 || last < first {
		return arena.Attempts{}, fmt.Errorf("a new pod did not say what it reached but %.80q", strings.TrimSpace(text))
	}
	a.First, a.Last = time.Duration(first)*10*time.Millisecond, time.Duration(last)*10*time.Millisecond
	return a, nil
}

// EngineEnds implements arena.Sandbox. The pods are those of the DaemonSets by which
// products are known, on the nodes that the arena uses.
func (s *sandbox) EngineEnds(ctx context.Context) (map[string]int, error) {
	cl := s.net.cl
	if len(cl.Options.Within) > 0 {
		return nil, nil // no right to see other namespaces
	}
	if s.engineIn == nil {
		pods, err := cl.pods(ctx, metav1.NamespaceAll)
		if err != nil {
			return nil, err
		}
		s.engineIn = map[string]bool{}
		for i := range pods {
			if isEngine(&pods[i]) {
				s.engineIn[pods[i].Namespace] = true
			}
		}
	}
	ends := map[string]int{}
	for namespace := range s.engineIn {
		pods, err := cl.pods(ctx, namespace)
		if err != nil {
			return nil, err
		}
		for i := range pods {
			if p := &pods[i]; isEngine(p) && slices.ContainsFunc(s.net.arena.list, func(n *node) bool { return n.realName == p.Spec.NodeName }) {
				for _, c := range p.Status.ContainerStatuses {
					ends[fmt.Sprintf("%s in pod %s/%s on %s", c.Name, p.Namespace, p.Name, p.Spec.NodeName)] = endsOf(c)
				}
			}
		}
	}
	return ends, nil
}

// isEngine says whether the pod is of a DaemonSet by which a product is known.
func isEngine(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "DaemonSet" && slices.ContainsFunc(products(), func(known product) bool { return known.daemonSet == o.Name })
	})
}

// endsOf counts how often the container has ended: its restarts, and the end that none has
// followed yet.
func endsOf(c corev1.ContainerStatus) int {
	ends := int(c.RestartCount)
	if c.State.Terminated != nil || c.State.Waiting != nil && c.LastTerminationState.Terminated != nil {
		ends++
	}
	return ends
}
