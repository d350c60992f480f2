package relay

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// reviewAge is how long an answer of the origin is believed, mostReviews how many are
// remembered, and reviewTimeout how long the origin may take for one: a caller that waits
// for it holds one of the requests that it may have.
const (
	reviewAge     = 10 * time.Second
	mostReviews   = 100_000
	reviewTimeout = 10 * time.Second
)

// errNoToken says that the origin decides about a request without a name.
var errNoToken = fmt.Errorf("%w: it has no bearer token", errUpstream)

// Reviews is the [Gate] that asks the origin: who a bearer token belongs to, by a
// TokenReview, and what that user may read, by a SubjectAccessReview. Answers are cached
// for ten seconds. A request without a token goes to the origin, which decides what an
// anonymous caller may do.
type Reviews struct {
	client  kubernetes.Interface
	callers answerCache[[sha256.Size]byte, Caller]
	rights  answerCache[[sha256.Size]byte, struct{}]
}

// NewReviews returns a gate that asks the API server of a config, with its credentials.
func NewReviews(config *rest.Config) (*Reviews, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS = -1 // a thousand callers may come at once
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Reviews{client: client}, nil
}

// Caller asks whose token a request has.
func (g *Reviews) Caller(r *http.Request) (Caller, error) {
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token = strings.TrimSpace(token); !found || token == "" {
		return Caller{}, errNoToken
	}
	return g.callers.get(r.Context(), sha256.Sum256([]byte(token)), func(ctx context.Context) (Caller, error) {
		review, err := g.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token},
		}, metav1.CreateOptions{})
		if err != nil {
			return Caller{}, notReviewed("tokenreviews", err)
		}
		if !review.Status.Authenticated {
			return Caller{}, apierrors.NewUnauthorized("Unauthorized")
		}
		user := review.Status.User
		caller := Caller{Name: user.Username, UID: user.UID, Groups: user.Groups}
		for name, values := range user.Extra {
			if caller.Extra == nil {
				caller.Extra = map[string][]string{}
			}
			caller.Extra[name] = values
		}
		return caller, nil
	})
}

// Allow asks whether a caller may read. A right to all objects includes those of a
// selector, so Allow asks for that first: five thousand watches of one caller, each of
// another node, cost one review and not five thousand.
func (g *Reviews) Allow(ctx context.Context, a Access) error {
	a.From = ""
	whole := a
	whole.LabelSelector, whole.FieldSelector = "", ""
	err := g.review(ctx, whole)
	if !apierrors.IsForbidden(err) || a.LabelSelector == "" && a.FieldSelector == "" {
		return err
	}
	return g.review(ctx, a)
}

func (g *Reviews) review(ctx context.Context, a Access) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = g.rights.get(ctx, sha256.Sum256(text), func(ctx context.Context) (struct{}, error) {
		review, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: reviewOf(a)}, metav1.CreateOptions{})
		if err != nil {
			return struct{}{}, notReviewed("subjectaccessreviews", err)
		}
		if !review.Status.Allowed {
			return struct{}{}, forbidden(a, review.Status.Reason)
		}
		return struct{}{}, nil
	})
	return err
}

func reviewOf(a Access) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: a.Caller.Name, UID: a.Caller.UID, Groups: a.Caller.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.Verb, Group: a.Resource.Group, Version: a.Resource.Version, Resource: a.Resource.Resource,
			Namespace: a.Namespace, Name: a.Name,
		},
	}
	for name, values := range a.Caller.Extra {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[name] = values
	}
	if a.LabelSelector != "" {
		spec.ResourceAttributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{RawSelector: a.LabelSelector}
	}
	if a.FieldSelector != "" {
		spec.ResourceAttributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: a.FieldSelector}
	}
	return spec
}

func forbidden(a Access, reason string) error {
	where := ` at the cluster scope`
	if a.Namespace != "" {
		where = ` in the namespace "` + a.Namespace + `"`
	}
	text := `User "` + a.Caller.Name + `" cannot ` + a.Verb + ` resource "` + a.Resource.Resource + `" in API group "` + a.Resource.Group + `"` + where
	if reason != "" {
		text += ": " + reason
	}
	return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, errors.New(text))
}

// notReviewed says that the relay could not find out who the caller is, or what it may
// do. A refusal is about the relay, not about the caller.
func notReviewed(what string, err error) error {
	text := "the relay cannot find out who you are and what you may do: " + err.Error()
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		text += "; the relay's own account needs the right to create " + what
	}
	return apierrors.NewServiceUnavailable(text)
}

// answerCache keeps answers for a while, refusals included. Requests that ask the same at
// the same time share one question.
type answerCache[K comparable, V any] struct {
	mu      sync.Mutex
	answers map[K]*cachedAnswer[V]
}

type cachedAnswer[V any] struct {
	done  chan struct{}
	since time.Time
	value V
	err   error
	// abandoned says that the caller that asked left before the answer came. Then err is
	// about that caller's request, and another caller has to ask again.
	abandoned bool
}

func (m *answerCache[K, V]) get(ctx context.Context, key K, ask func(context.Context) (V, error)) (V, error) {
	for {
		m.mu.Lock()
		a, found := m.answers[key]
		if !found || !a.since.IsZero() && time.Since(a.since) >= reviewAge {
			a = &cachedAnswer[V]{done: make(chan struct{})}
			if m.answers == nil || len(m.answers) >= mostReviews {
				m.answers = map[K]*cachedAnswer[V]{}
			}
			m.answers[key] = a
			m.mu.Unlock()
			return m.ask(ctx, key, a, ask)
		}
		m.mu.Unlock()
		select {
		case <-a.done:
		case <-ctx.Done():
			var none V
			return none, context.Cause(ctx)
		}
		if !a.abandoned || ctx.Err() != nil {
			return a.value, a.err
		}
	}
}

// ask asks the question. An answer that says nothing about the caller is not kept.
func (m *answerCache[K, V]) ask(ctx context.Context, key K, a *cachedAnswer[V], ask func(context.Context) (V, error)) (V, error) {
	asking, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	a.value, a.err = ask(asking)
	a.abandoned = transient(a.err) && ctx.Err() != nil
	m.mu.Lock()
	a.since = time.Now()
	if transient(a.err) && m.answers[key] == a {
		delete(m.answers, key)
	}
	m.mu.Unlock()
	close(a.done)
	return a.value, a.err
}

func transient(err error) bool {
	return err != nil && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err)
}

// Everybody is the [Gate] that lets everybody read everything that the relay has a copy
// of, with the rights of the relay. It is for tests and demonstrations, and for a socket
// that only trusted users can open.
type Everybody struct{}

// Caller is the same for all.
func (Everybody) Caller(*http.Request) (Caller, error) { return Caller{Name: "everybody"}, nil }

// Allow allows everything.
func (Everybody) Allow(context.Context, Access) error { return nil }
