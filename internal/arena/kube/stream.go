package kube

import (
	"context"
	"io"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/cnibench/cnibench/internal/agent"
)

// container is the only one of our pods.
const container = "main"

// stream runs the command in the container of the pod, over a WebSocket or, where something on
// the way does not know those, over SPDY.
func (cl *Cluster) stream(namespace, pod, container string, argv []string) agent.Stream {
	return func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
		request := cl.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{Container: container, Command: argv, Stdin: true, Stdout: true, Stderr: true}, scheme.ParameterCodec)
		spdy, err := remotecommand.NewSPDYExecutor(cl.Config, "POST", request.URL())
		if err != nil {
			return err
		}
		websocket, err := remotecommand.NewWebSocketExecutor(cl.Config, "GET", request.URL().String())
		if err != nil {
			return err
		}
		exec, err := remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
			return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
		})
		if err != nil {
			return err
		}
		// The library's own log says on standard error what the error says, too.
		ctx = klog.NewContext(ctx, logr.Discard())
		return exec.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: stderr})
	}
}
