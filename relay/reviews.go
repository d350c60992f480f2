package relay

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// reviewAge is how long an answer of the origin is believed, mostReviews how many of each
// sort are remembered, and reviewTimeout how long a caller waits for one: it holds one of the
// requests that it may have meanwhile.
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
//
// A caller is limited by the relay once it is known, so everybody can make the relay ask about
// tokens. Therefore a bounded number of TokenReviews run at once. A token that the origin has
// accepted before does not wait for those that are unknown: a flood of invented tokens delays
// new callers, and neither those that the relay knows nor the end of a watch whose token was
// revoked.
type Reviews struct {
	client  kubernetes.Interface
	callers answerCache[[sha256.Size]byte, Caller]
	rights  answerCache[[sha256.Size]byte, struct{}]
	// unknown and known are for TokenReviews, by whether the token was accepted before.
	unknown, known *reviewSlots
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
	return newReviews(client), nil
}

func newReviews(client kubernetes.Interface) *Reviews {
	return &Reviews{
		client:  client,
		unknown: newReviewSlots(tokenReviewsAtOnce, tokenReviewsWaiting),
		known:   newReviewSlots(tokenReviewsAtOnce, tokenReviewsWaiting),
	}
}

// Caller asks whose token a request has.
func (g *Reviews) Caller(r *http.Request) (Caller, error) {
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token = strings.TrimSpace(token); !found || token == "" {
		return Caller{}, errNoToken
	}
	key := sha256.Sum256([]byte(token))
	return g.callers.get(r.Context(), key, func(ctx context.Context) (Caller, error) {
		slots := g.unknown
		if g.callers.succeeded(key) {
			slots = g.known
		}
		release, err := slots.take(ctx)
		if err != nil {
			return Caller{}, err
		}
		defer release()
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
//
// Refusals are kept apart: anybody can cause many of them, and they must not displace other
// answers. A good answer that is too old stays until another one replaces it, for succeeded.
type answerCache[K comparable, V any] struct {
	mu sync.Mutex
	// good are answers without an error, others refusals and questions that are open.
	good, others map[K]*cachedAnswer[V]
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

func (a *cachedAnswer[V]) old() bool { return !a.since.IsZero() && time.Since(a.since) >= reviewAge }

func (m *answerCache[K, V]) get(ctx context.Context, key K, ask func(context.Context) (V, error)) (V, error) {
	for {
		a, mine := m.find(key)
		if mine {
			return m.ask(ctx, key, a, ask)
		}
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

// find returns the answer to a question, which may still be open; mine says that the caller
// has to ask it.
func (m *answerCache[K, V]) find(key K) (a *cachedAnswer[V], mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, found := m.good[key]; found && !a.old() {
		return a, false
	}
	if a, found := m.others[key]; found && !a.old() {
		return a, false
	}
	a = &cachedAnswer[V]{done: make(chan struct{})}
	keep(&m.others, key, a)
	return a, true
}

// keep adds an answer. If there are too many, the old ones go, or all if that is not enough.
func keep[K comparable, V any](answers *map[K]*cachedAnswer[V], key K, a *cachedAnswer[V]) {
	if len(*answers) >= mostReviews {
		maps.DeleteFunc(*answers, func(_ K, a *cachedAnswer[V]) bool { return a.old() })
	}
	if *answers == nil || len(*answers) >= mostReviews {
		*answers = map[K]*cachedAnswer[V]{}
	}
	(*answers)[key] = a
}

// succeeded says whether the last answer to a question was good, however old it is. It may
// have been forgotten.
func (m *answerCache[K, V]) succeeded(key K) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.good[key]
	return found
}

// ask asks the question. An answer that says nothing about the caller is not kept.
func (m *answerCache[K, V]) ask(ctx context.Context, key K, a *cachedAnswer[V], ask func(context.Context) (V, error)) (V, error) {
	asking, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	a.value, a.err = ask(asking)
	a.abandoned = transient(a.err) && ctx.Err() != nil
	m.mu.Lock()
	a.since = time.Now()
	if (a.err == nil || transient(a.err)) && m.others[key] == a {
		delete(m.others, key)
	}
	switch {
	case a.err == nil:
		keep(&m.good, key, a)
	case !transient(a.err):
		delete(m.good, key)
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
