package doctor

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// Collection is a resource in a namespace, or in all namespaces if that is empty.
type Collection struct {
	Resource  schema.GroupVersionResource
	Namespace string
}

func (c Collection) String() string {
	name := c.Resource.GroupResource().String()
	if c.Namespace == "" {
		return name
	}
	return name + " in " + c.Namespace
}

func (c Collection) path() string {
	path := "/apis/" + c.Resource.Group + "/" + c.Resource.Version
	if c.Resource.Group == "" {
		path = "/api/" + c.Resource.Version
	}
	if c.Namespace != "" {
		path += "/namespaces/" + c.Namespace
	}
	return path + "/" + c.Resource.Resource
}

// Rights checks whether collections may be listed and watched, and returns those that
// may.
func (d *Doctor) Rights(ctx context.Context, s *Server, collections []Collection, needs ...string) (granted []Collection) {
	for _, c := range collections {
		r := d.Check(ctx, "rights", append(needs, checkAuthentication), func(ctx context.Context) Result { return s.mayRead(ctx, c) })
		if r.Status == OK {
			granted = append(granted, c)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return granted
}

func (s *Server) mayRead(ctx context.Context, c Collection) Result {
	client, err := authorization.NewForConfigAndClient(s.cfg, s.http)
	if err != nil {
		return fail("check the user in the kubeconfig", "%v", err)
	}
	var denied []string
	reason := ""
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: c.Namespace, Verb: verb,
				Group: c.Resource.Group, Version: c.Resource.Version, Resource: c.Resource.Resource,
			},
		}}
		answer, err := client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return warn("try it with \"tarn get\"", "%s: the server does not say what is allowed: %v", c, cause(ctx, bare(err)))
		}
		if !answer.Status.Allowed {
			denied = append(denied, verb)
			reason = answer.Status.Reason
		}
	}
	if len(denied) == 0 {
		return ok("may list and watch %s", c)
	}
	found := fmt.Sprintf("may not %s %s", strings.Join(denied, " and "), c)
	if reason != "" {
		found += " (" + reason + ")"
	}
	advice := fmt.Sprintf("grant list and watch on %s", c)
	if c.Namespace == "" {
		advice += " in all namespaces, or name one with -n"
	}
	return fail(advice, "%s", found)
}
