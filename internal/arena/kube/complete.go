package kube

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// completionPatience is how long a user waits at a prompt for names.
const completionPatience = 2 * time.Second

// Names returns the names of the cluster's objects of the core group's resource: "nodes",
// "namespaces"; those within a namespace, such as "pods", as NAMESPACE/NAME. nil if the
// cluster does not answer at once or does not let the user list them.
func Names(ctx context.Context, o Options, resource string) []string {
	config, _, err := restConfig(o)
	if err != nil {
		return nil
	}
	config.Timeout, config.WarningHandler = completionPatience, rest.NoWarnings{}
	config.QPS, config.Burst = requestsPerSecond, requestBurst
	client, err := newClient(config)
	if err != nil {
		return nil
	}
	raw, err := client.CoreV1().RESTClient().Get().Resource(resource).
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").DoRaw(ctx)
	var list metav1.PartialObjectMetadataList
	if err != nil || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var names []string
	for _, o := range list.Items {
		name := o.Name
		if o.Namespace != "" {
			name = o.Namespace + "/" + name
		}
		names = append(names, name)
	}
	return names
}
