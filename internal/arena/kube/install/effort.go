package install

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/result"
)

// sizesPatience is how long kubelets may take to report the sizes of new images: they read
// the sizes every 30 s and report every 10 s.
const sizesPatience = 45 * time.Second

// Effort implements kube.Installer. It counts the steps of the recipe, the objects that
// the steps make (not those that the product's operator makes), and the images of all
// pods that came with the contender. The images' size, bytes, is counted once, not for
// each node, and is missing if one image's size is unknown.
func (i *Installer) Effort(ctx context.Context, cl *kube.Cluster) (map[string]float64, error) {
	left, err := i.loadJournal(ctx, cl)
	switch {
	case err != nil:
		return nil, err
	case left == nil || left.By != i.id:
		return nil, errors.New("nothing of this run is installed")
	}
	images, err := i.newImages(ctx, cl)
	if err != nil {
		return nil, err
	}
	m := map[string]float64{
		result.InstallSteps:   float64(len(i.installed.Kube.StepsOf(left.Versions))),
		result.InstallObjects: float64(left.objects()),
		result.InstallImages:  float64(len(images)),
	}
	err = wait.PollUntilContextTimeout(ctx, 3*time.Second, sizesPatience, true, func(ctx context.Context) (bool, error) {
		nodes, err := cl.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, nil // try again
		}
		sum, all := sizes(images, nodes.Items)
		if all {
			m[result.InstallImageSize] = sum
		}
		return all, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		i.o.Log("the nodes do not say how large the images of %s are", left.Contender)
		err = nil
	}
	return m, err
}

// objects returns how many objects the steps make.
func (l *journal) objects() int {
	n := 0
	for _, s := range l.Steps {
		n += len(s.Objects)
		if s.Chart != nil {
			n += len(s.Chart.Definitions) + len(s.Chart.Objects) + len(s.Chart.HookObjects)
		}
	}
	return n
}

// newImages returns the images of the pods that came with the contender, without this
// program's: their names, by digest.
func (i *Installer) newImages(ctx context.Context, cl *kube.Cluster) (map[string]string, error) {
	pods, err := allPods(ctx, cl.Client)
	if err != nil {
		return nil, err
	}
	images := map[string]string{}
	for _, p := range pods {
		if i.olderPods[p.UID] || p.Namespace == ownNamespace || p.Labels["app.kubernetes.io/managed-by"] == "cnibench" {
			continue
		}
		for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
			for _, c := range list {
				if c.ImageID != "" {
					images[c.ImageID] = c.Image
				}
			}
		}
	}
	return images, nil
}

// sizes adds up the images' sizes, bytes. all says whether every size is known.
func sizes(images map[string]string, nodes []corev1.Node) (sum float64, all bool) {
	known := map[string]int64{}
	for _, n := range nodes {
		for _, image := range n.Status.Images {
			for _, name := range image.Names {
				known[name] = max(known[name], image.SizeBytes)
			}
		}
	}
	for id, name := range images {
		size := max(known[id], known[name])
		if size == 0 {
			return 0, false
		}
		sum += float64(size)
	}
	return sum, true
}
