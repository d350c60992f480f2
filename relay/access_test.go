package relay

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/apiserver"
)

// The old watch paths need the right to all objects, or to the one in the path, whatever a request
// selects: API servers do not show authorizers the selectors of these paths. With a name in the
// path, a selector of another field is an error.
func TestSelectorIsNotForgotten(t *testing.T) {
	const mine = "spec.nodeName=node-mine"
	j := &judge{users: map[string]string{"t1": "kubelet", "t2": "admin"}, allowed: map[string]bool{
		"kubelet watch pods default  " + mine:                true,
		"kubelet watch pods default theirs " + mine:          true,
		"kubelet watch pods default theirs":                  false,
		"kubelet watch pods default mine":                    true,
		"kubelet watch pods default mine metadata.name=mine": true,
		"admin watch pods default ":                          true,
		"admin watch pods default theirs":                    true,
	}}
	inBubble(t, Options{Gate: j.gate()}, func(t *testing.T, r *Relay, origin *apiserver.Server, _ func()) {
		if err := origin.Put(pod("mine", "mine"), pod("theirs", "theirs")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, c := range []struct {
			path, token string
			code        int
			events      int
		}{
			{"/pods/theirs?fieldSelector=spec.nodeName%3Dnode-mine", "t1", http.StatusForbidden, 0},
			{"/pods?fieldSelector=spec.nodeName%3Dnode-mine", "t1", http.StatusForbidden, 0},
			{"/pods?fieldSelector=metadata.name%3Dmine", "t1", http.StatusForbidden, 0},
			{"/pods/mine?fieldSelector=metadata.name%3Dmine", "t1", http.StatusOK, 1},
			{"/pods/theirs?fieldSelector=spec.nodeName%3Dnode-mine", "t2", http.StatusBadRequest, 0},
			{"/pods?fieldSelector=spec.nodeName%3Dnode-mine", "t2", http.StatusOK, 1},
			{"/pods?labelSelector=l%3Dnone", "t2", http.StatusOK, 0},
		} {
			answer := ask(r, "/api/v1/watch/namespaces/default"+c.path+"&timeoutSeconds=1&resourceVersion=0", c.token)
			if events := strings.Count(answer.Body.String(), `"ADDED"`); answer.Code != c.code || events != c.events {
				t.Errorf("%s as %s: %d with %d events, want %d with %d: %s", c.path, j.users[c.token], answer.Code, events, c.code, c.events, answer.Body)
			}
		}
	})
}

// Requests are described to authorizers as the API server describes them.
func TestAccessOf(t *testing.T) {
	namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
	for _, c := range []struct {
		path string
		want Access
	}{
		{"/api/v1/pods", Access{Verb: "list", Resource: pods}},
		{"/api/v1/pods?watch=", Access{Verb: "watch", Resource: pods}},
		{"/api/v1/pods?watch=f", Access{Verb: "watch", Resource: pods}},
		{"/api/v1/pods?watch=False&watch=1", Access{Verb: "list", Resource: pods}},
		{"/api/v1/namespaces/a/pods?labelSelector=x&fieldSelector=metadata.name%3Db", Access{Verb: "list", Resource: pods, Namespace: "a", Name: "b", LabelSelector: "x", FieldSelector: "metadata.name=b"}},
		// A name that no object can have is not one.
		{"/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Db%2Fc", Access{Verb: "list", Resource: pods, Namespace: "a", FieldSelector: "metadata.name=b/c"}},
		{"/api/v1/watch/namespaces/a/pods/b", Access{Verb: "watch", Resource: pods, Namespace: "a", Name: "b"}},
		// Nothing is selected on the old paths of watches: not all of them know selectors.
		{"/api/v1/watch/namespaces/a/pods/b?labelSelector=x&fieldSelector=metadata.name%3Db", Access{Verb: "watch", Resource: pods, Namespace: "a", Name: "b"}},
		{"/api/v1/watch/namespaces/a/pods?labelSelector=x&fieldSelector=metadata.name%3Db", Access{Verb: "watch", Resource: pods, Namespace: "a"}},
		{"/api/v1/watch/pods?fieldSelector=spec.nodeName%3Dn", Access{Verb: "watch", Resource: pods}},
		// Nothing selects among one object: a selector must not make a get look harmless.
		{"/api/v1/namespaces/a/pods/b?resourceVersion=0&watch=1&labelSelector=x&fieldSelector=spec.nodeName%3Dn", Access{Verb: "get", Resource: pods, Namespace: "a", Name: "b"}},
		// A namespace is in itself, so who may read all of it may read it too.
		{"/api/v1/namespaces/a?resourceVersion=0", Access{Verb: "get", Resource: namespaces, Namespace: "a", Name: "a"}},
		{"/api/v1/watch/namespaces/a", Access{Verb: "watch", Resource: namespaces, Namespace: "a", Name: "a"}},
		{"/api/v1/namespaces", Access{Verb: "list", Resource: namespaces}},
	} {
		request, err := http.NewRequest(http.MethodGet, c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		to, _ := apiserver.ParsePath(request.URL.Path)
		got := accessOf(request, Caller{}, to)
		got.Caller = Caller{}
		if got.Verb != c.want.Verb || got.Resource != c.want.Resource || got.Namespace != c.want.Namespace || got.Name != c.want.Name || got.LabelSelector != c.want.LabelSelector || got.FieldSelector != c.want.FieldSelector {
			t.Errorf("%s: %+v, not %+v", c.path, got, c.want)
		}
	}
}

// hangs is an origin that takes reviews and does not answer them, while on is set.
type hangs struct {
	next http.RoundTripper
	on   *atomic.Bool
}

func (h hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.on.Load() && strings.HasSuffix(r.URL.Path, "reviews") {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return h.next.RoundTrip(r)
}

// An origin that does not answer the question who somebody is does not keep callers waiting
// for ever, and an open watch is asked for again once it answers.
func TestReviewsWithoutAnAnswer(t *testing.T) {
	var on atomic.Bool
	inBubbleThrough(t, func(next http.RoundTripper) http.RoundTripper { return hangs{next, &on} }, Options{}, func(t *testing.T, r *Relay, _ *apiserver.Server, _ func()) {
		const list = "/api/v1/pods?resourceVersion=0"
		if answer := ask(r, list, "t"); answer.Code != http.StatusOK {
			t.Fatal(answer.Code, answer.Body)
		}
		open := watchAs(t, r, "t")
		on.Store(true)
		time.Sleep(time.Minute)
		began := time.Now()
		answer := ask(r, list, "t")
		if took := time.Since(began); answer.Code != http.StatusServiceUnavailable || took > 11*time.Second || !strings.Contains(answer.Body.String(), "cannot find out who you are") {
			t.Errorf("%d after %v: %s", answer.Code, took, answer.Body)
		}
		if open.ended() {
			t.Error("an origin that does not answer has ended a watch")
		}
		on.Store(false)
		before := r.counts.reviews.Load()
		time.Sleep(time.Minute)
		if now := r.counts.reviews.Load(); now == before {
			t.Error("the right to an open watch is not asked for any more")
		}
	})
}

// TestReviewsThatManyWaitFor has an origin that does not answer, and several callers that wait
// for the same review. If each asked again after the other, that would take minutes.
func TestReviewsThatManyWaitFor(t *testing.T) {
	var on atomic.Bool
	inBubbleThrough(t, func(next http.RoundTripper) http.RoundTripper { return hangs{next, &on} }, Options{}, func(t *testing.T, r *Relay, _ *apiserver.Server, _ func()) {
		on.Store(true)
		began := time.Now()
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				answer := ask(r, "/api/v1/pods?resourceVersion=0", "t")
				if answer.Code != http.StatusServiceUnavailable {
					t.Errorf("%d: %s", answer.Code, answer.Body)
				}
			})
		}
		asking.Wait()
		if took := time.Since(began); took > reviewTimeout+time.Second {
			t.Errorf("the last one was answered after %v", took)
		}
	})
}

// TestReviewsOutliveTheirCaller cancels a request while others wait for its review: one of them
// asks again.
func TestReviewsOutliveTheirCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m answerCache[string, int]
		question := func(ctx context.Context) (int, error) {
			select {
			case <-time.After(2 * time.Second):
				return 42, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		first, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := m.get(first, "q", question); err == nil {
				t.Error("the cancelled request got an answer")
			}
		})
		synctest.Wait()
		for range 5 {
			asking.Go(func() {
				if n, err := m.get(t.Context(), "q", question); n != 42 || err != nil {
					t.Error(n, err)
				}
			})
		}
		asking.Wait()
	})
}
