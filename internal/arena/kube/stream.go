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

// container is the name of the only container of each pod.
const container = "main"

// stream returns a stream to the command in the pod's container. It uses a WebSocket, or
// SPDY if a proxy on the way does not support WebSockets.
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
		// The library would also log the returned error on standard error.
		ctx = klog.NewContext(ctx, logr.Discard())
		return exec.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: stderr})
	}
}
