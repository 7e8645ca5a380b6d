package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/arena"
)

// right is a rule and its purpose.
type right struct {
	rule rbacv1.PolicyRule
	// cluster says that the right is needed in the whole cluster, even if the run is within
	// namespaces of an administrator.
	cluster bool
	// optional is what is left out without the right; "": a run needs the right.
	optional string
}

func rule(group string, resources, verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs, ResourceNames: names}
}

// coordination is the API group of Leases.
const coordination = "coordination.k8s.io"

// rights returns the rights that the arena needs. They apply to the whole cluster, since
// the name of the run's namespace is not known before the run.
func rights(o Options) []right {
	if o.Install != nil {
		// Pod networks come with roles, and only a user with all rights may grant any right.
		return []right{{rule: rule("*", []string{"*"}, []string{"*"})}}
	}
	if len(o.Within) > 0 {
		return rightsWithin()
	}
	return []right{
		{rule: rule("", []string{"nodes"}, []string{"list"})},
		{rule: rule("", []string{"namespaces"}, []string{"get", "list", "create", "delete"})},
		{rule: rule("", []string{"pods"}, []string{"get", "list", "create", "delete"})},
		// A WebSocket is asked for with GET, SPDY with POST.
		{rule: rule("", []string{"pods/exec"}, []string{"get", "create"})},
		{rule: rule(coordination, []string{"leases"}, []string{"create"})},
		{rule: rule(coordination, []string{"leases"}, []string{"get", "update", "delete"}, leaseName)},
		{rule: rule("", []string{"services"}, []string{"get", "create", "delete"}), optional: "steps of the path service"},
		{rule: rule("discovery.k8s.io", []string{"endpointslices"}, []string{"create", "deletecollection"}), optional: "steps of the path service"},
		{rule: rule("networking.k8s.io", []string{"networkpolicies"}, []string{"get", "create", "update", "delete"}), optional: "check policy"},
		{rule: rule("networking.k8s.io", []string{"networkpolicies"}, []string{"list"}), optional: "which policies select the pod of diagnose --pod"},
		{rule: rule("", []string{"events"}, []string{"list"}), optional: "why a pod does not start"},
		{rule: rule("apps", []string{"daemonsets"}, []string{"list"}), optional: "which pod network this is"},
		{rule: rule("", []string{"configmaps"}, []string{"get"}, configMaps()...), optional: "how the pod network is configured"},
	}
}

// rightsWithin returns the rights that the arena needs in an administrator's namespaces.
func rightsWithin() []right {
	return []right{
		{rule: rule("", []string{"nodes"}, []string{"list"}), cluster: true},
		{rule: rule("", []string{"pods"}, []string{"get", "list", "create", "delete"})},
		{rule: rule("", []string{"pods/exec"}, []string{"get", "create"})},
		{rule: rule(coordination, []string{"leases"}, []string{"create"})},
		{rule: rule(coordination, []string{"leases"}, []string{"get", "update", "delete"}, leaseName)},
		{rule: rule("", []string{"services"}, []string{"get", "list", "create", "delete"}), optional: "steps of the path service"},
		{rule: rule("discovery.k8s.io", []string{"endpointslices"}, []string{"create", "deletecollection"}), optional: "steps of the path service"},
		{rule: rule("", []string{"namespaces"}, []string{"get"}), optional: "check policy"},
		{rule: rule("networking.k8s.io", []string{"networkpolicies"}, []string{"get", "list", "create", "update", "delete"}), optional: "check policy"},
		{rule: rule("", []string{"events"}, []string{"list"}), optional: "why a pod does not start"},
	}
}

// Rules returns the rules with the verbs that the arena uses.
func Rules(o Options) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, r := range rights(o) {
		rules = append(rules, r.rule)
	}
	if o.Install != nil {
		rules = append(rules, rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}})
	}
	return rules
}

// roleName is the name of the service account, its role and their binding.
const roleName = "cnibench"

// warning is for the administrator who applies the rights.
const warning = `# Whoever has these rights can be root on every node: they hold in every namespace,
# since the name of a run's own is not known before, and with them pods can be
# made, entered and removed. Treat the account as an administrator's, and delete
# it when the measurements are done: kubectl delete -f FILE
`

// warningWithin is the same for rights within namespaces.
const warningWithin = `# The labels team and trusted of the namespaces are for check policy, whose policies
# select namespaces by them.
# Whoever has these rights can list the cluster's nodes, and make, enter and remove
# pods in the namespaces below, nothing else. What such a pod may do is the
# namespace's Pod Security level: where that allows the host network, so does this.
`

// RBAC returns the objects that grant the rights, as YAML below a comment: a
// ServiceAccount, a ClusterRole with Rules and their binding. With Options.Within these
// are the namespaces, a Role in each, a ClusterRole that lists nodes, and the account in
// the first namespace.
func RBAC(o Options) ([]byte, error) {
	for _, name := range append([]string{o.prefix()}, o.Within...) {
		if wrong := validation.IsDNS1123Label(name); wrong != nil {
			return nil, &UsageError{fmt.Sprintf("namespace %q: a name has lower case letters, digits and - only, at most 63, and neither begins nor ends with -", name)}
		}
	}
	account := o.prefix()
	comment := warning
	var objects []any
	if len(o.Within) > 0 {
		account, comment = o.Within[0], warningWithin
		for i, ns := range o.Within {
			n := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: ns}}
			if i < len(withinLabels) {
				n.Labels = withinLabels[i]
			}
			objects = append(objects, n)
		}
	}
	meta := metav1.ObjectMeta{Name: roleName, Labels: map[string]string{"app.kubernetes.io/name": "cnibench"}}
	in := func(namespace string) metav1.ObjectMeta {
		own := meta
		own.Namespace = namespace
		return own
	}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind}
	}
	to := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: kind, Name: roleName}
	}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: roleName, Namespace: account}}
	everywhere, local := Rules(o), []rbacv1.PolicyRule(nil)
	if len(o.Within) > 0 {
		everywhere = nil
		for _, r := range rights(o) {
			if r.cluster {
				everywhere = append(everywhere, r.rule)
			} else {
				local = append(local, r.rule)
			}
		}
	}
	objects = append(objects,
		&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: in(account)},
		&rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: meta, Rules: everywhere},
		&rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: meta, RoleRef: to("ClusterRole"), Subjects: subjects})
	for _, ns := range o.Within {
		objects = append(objects,
			&rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: in(ns), Rules: local},
			&rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: in(ns), RoleRef: to("Role"), Subjects: subjects})
	}
	out := bytes.NewBufferString(comment)
	for i, object := range objects {
		b, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(b)
	}
	return out.Bytes(), nil
}

// findMissingRights returns the rights that the user lacks, as texts: those that every run
// needs, and those that are optional, by what is left out without them.
func (cl *Cluster) findMissingRights(ctx context.Context) (needed []string, optional map[string][]string, err error) {
	type question struct {
		ask      authorizationv1.ResourceAttributes
		optional string
		denied   bool
	}
	where := func(r right) []string {
		if r.cluster || len(cl.Options.Within) == 0 {
			return []string{""}
		}
		return cl.Options.Within
	}
	var all []*question
	for _, r := range rights(cl.Options) {
		names := r.rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, resource := range r.rule.Resources {
			for _, verb := range r.rule.Verbs {
				for _, name := range names {
					ask := authorizationv1.ResourceAttributes{Group: r.rule.APIGroups[0], Verb: verb, Name: name}
					ask.Resource, ask.Subresource, _ = strings.Cut(resource, "/")
					for _, ask.Namespace = range where(r) {
						all = append(all, &question{ask: ask, optional: r.optional})
					}
				}
			}
		}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(10)
	for _, q := range all {
		group.Go(func() error {
			return cl.do(groupCtx, "ask for rights", func(ctx context.Context) error {
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &q.ask}}
				got, err := cl.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
				if err == nil {
					q.denied = !got.Status.Allowed
				}
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	optional = map[string][]string{}
	for _, q := range all {
		if !q.denied {
			continue
		}
		if text := rightText(q.ask); q.optional == "" {
			needed = append(needed, text)
		} else if !slices.Contains(optional[q.optional], text) {
			optional[q.optional] = append(optional[q.optional], text)
		}
	}
	return needed, optional, nil
}

// rightText returns a right as kubectl writes it: "create pods/exec".
func rightText(a authorizationv1.ResourceAttributes) string {
	if a.Verb == "*" && a.Resource == "*" {
		return "do everything, as --install must (cluster-admin)"
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	if a.Group != "" && a.Group != "*" {
		resource += "." + a.Group
	}
	if a.Namespace != "" {
		resource += " in " + a.Namespace
	}
	return a.Verb + " " + resource
}

// errRights returns an *arena.Unsupported that names the missing rights.
func errRights(missing []string) error {
	return &arena.Unsupported{
		Reason: fmt.Sprintf("this user may not: %s", strings.Join(missing, ", ")),
		Remedy: "have an administrator apply what `cnibench rbac` prints, with the same --namespace if there is one, and bind this user to its roles, or use its service account",
	}
}

// checkRights returns an error if the user lacks a right that every run needs, else the
// missing optional rights, by what is left out without them.
func (cl *Cluster) checkRights(ctx context.Context) (optional map[string][]string, err error) {
	needed, optional, err := cl.findMissingRights(ctx)
	if err != nil {
		return nil, errors.Join(errors.New("the rights are not known"), cl.explainRefusal(err))
	}
	if len(needed) > 0 {
		return nil, errRights(needed)
	}
	return optional, nil
}
