package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/tarnproject/tarn/apiserver"
)

// judge is an origin's word on who may do what, which can change.
type judge struct {
	mu      sync.Mutex
	users   map[string]string // by token
	allowed map[string]bool   // "user verb resource namespace name", and " selector" of fields
	reviews int
	seen    []*authorizationv1.ResourceAttributes
}

func (j *judge) gate() *Reviews {
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.reviews++
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		review.Status.User.Username, review.Status.Authenticated = j.users[review.Spec.Token], j.users[review.Spec.Token] != ""
		return true, review, nil
	})
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.reviews++
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		a := review.Spec.ResourceAttributes
		j.seen = append(j.seen, a)
		right := strings.Join([]string{review.Spec.User, a.Verb, a.Resource, a.Namespace, a.Name}, " ")
		if a.FieldSelector != nil {
			right += " " + a.FieldSelector.RawSelector
		}
		review.Status.Allowed = j.allowed[right]
		return true, review, nil
	})
	return newReviews(client)
}

// inBubble runs a relay of pods in virtual time.
func inBubble(t *testing.T, options Options, test func(t *testing.T, r *Relay, origin *apiserver.Server, stop func())) {
	inBubbleThrough(t, nil, options, test)
}

// inBubbleThrough lets wrap change what the relay asks of its origin, and what it receives.
func inBubbleThrough(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper, options Options, test func(t *testing.T, r *Relay, origin *apiserver.Server, stop func())) {
	synctest.Test(t, func(t *testing.T) {
		origin := apiserver.New(apiserver.Options{AnyNamespace: true})
		defer origin.Close()
		options.Config, options.Resources = origin.Config(), []schema.GroupVersionResource{pods}
		options.Config.WrapTransport = wrap
		// Requests without the relay's credentials do not use the origin's transport.
		options.Config.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("there is no network") }
		options.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
		r, err := New(options)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = r.Run(ctx)
		}()
		stop := sync.OnceFunc(func() {
			cancel()
			<-ended
		})
		defer stop()
		if err := r.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, r, origin, stop)
	})
}

func ask(r *Relay, path, token string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Authorization", "Bearer "+token)
	answer := httptest.NewRecorder()
	r.ServeHTTP(answer, request)
	return answer
}

// A caller reads what the origin says that it may, and not more; answers are believed for
// ten seconds.
func TestReviews(t *testing.T) {
	j := &judge{users: map[string]string{"t1": "ann", "t2": "ben"}, allowed: map[string]bool{"ann list pods  ": true, "ben list pods default x metadata.name=x": true}}
	var audit []Access
	inBubble(t, Options{Gate: j.gate(), Audit: func(a Access) { audit = append(audit, a) }}, func(t *testing.T, r *Relay, _ *apiserver.Server, _ func()) {
		expect := func(path, token string, code int, text string) {
			t.Helper()
			if answer := ask(r, path, token); answer.Code != code || !strings.Contains(answer.Body.String(), text) {
				t.Errorf("%s as %s: %d %s", path, token, answer.Code, answer.Body)
			}
		}
		const all = "/api/v1/pods?resourceVersion=0"
		expect(all, "t1", http.StatusOK, "PodList")
		expect(all, "t1", http.StatusOK, "PodList")
		for i := range 100 {
			expect(fmt.Sprintf("%s&fieldSelector=spec.nodeName%%3Dnode-%d", all, i), "t1", http.StatusOK, "PodList")
		}
		if j.reviews != 2 {
			t.Errorf("%d reviews for the same question", j.reviews)
		}
		expect(all, "t2", http.StatusForbidden, `User \"ben\" cannot list resource \"pods\" in API group \"\" at the cluster scope`)
		expect("/api/v1/namespaces/default/pods?resourceVersion=0&fieldSelector=metadata.name%3Dx", "t2", http.StatusOK, "PodList")
		if last := j.seen[len(j.seen)-1]; last.FieldSelector == nil || last.FieldSelector.RawSelector != "metadata.name=x" {
			t.Errorf("%+v", last)
		}
		expect(all, "stolen", http.StatusUnauthorized, "Unauthorized")
		j.allowed = nil
		expect(all, "t1", http.StatusOK, "PodList")
		time.Sleep(reviewAge)
		expect(all, "t1", http.StatusForbidden, "cannot list")
		if len(audit) != 104 || audit[0].Caller.Name != "ann" || audit[0].Verb != "list" || audit[0].Resource != pods {
			t.Errorf("%+v", audit)
		}
	})
}

// watchAs opens a watch, which ends with the test at the latest.
func watchAs(t *testing.T, r *Relay, token string) *modelStream { return watchAt(t, r, token, "0") }

func watchAt(t *testing.T, r *Relay, token, version string) *modelStream {
	ctx, cancel := context.WithCancel(t.Context())
	s := &modelStream{cancel: cancel, done: make(chan struct{}), header: http.Header{}}
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/pods?watch=1&resourceVersion="+version, nil)
	request.Header.Set("Authorization", "Bearer "+token)
	go func() {
		defer close(s.done)
		r.ServeHTTP(s, request)
	}()
	synctest.Wait()
	return s
}

// An open watch ends when its caller loses the right to it, and when its token ends.
func TestRightsOfOpenWatches(t *testing.T) {
	j := &judge{users: map[string]string{"t1": "ann", "t2": "ben", "t3": "eve"}, allowed: map[string]bool{"ann watch pods  ": true, "ben watch pods  ": true, "eve watch pods  ": true}}
	inBubble(t, Options{Gate: j.gate()}, func(t *testing.T, r *Relay, origin *apiserver.Server, _ func()) {
		ann, ben, eve := watchAs(t, r, "t1"), watchAs(t, r, "t2"), watchAs(t, r, "t3")
		time.Sleep(time.Minute)
		j.mu.Lock()
		delete(j.allowed, "ann watch pods  ")
		delete(j.users, "t2")
		j.mu.Unlock()
		time.Sleep(2*askAgain + time.Second)
		if !ann.ended() || !ben.ended() || eve.ended() {
			t.Errorf("ann %v, ben %v, eve %v", ann.ended(), ben.ended(), eve.ended())
		}
		if err := origin.Put(pod("a", "1")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if lines := eve.take(); len(lines) != 1 || len(ann.take())+len(ben.take()) != 0 {
			t.Errorf("%q", lines)
		}
		eve.cancel()
		<-eve.done
	})
}

// One caller cannot have more watches than the limit; another one can.
func TestLimits(t *testing.T) {
	j := &judge{users: map[string]string{"t1": "ann", "t2": "ben"}, allowed: map[string]bool{"ann watch pods  ": true, "ben watch pods  ": true}}
	inBubble(t, Options{Gate: j.gate(), CallerWatches: 2}, func(t *testing.T, r *Relay, _ *apiserver.Server, _ func()) {
		streams := []*modelStream{watchAs(t, r, "t1"), watchAs(t, r, "t1"), watchAs(t, r, "t2")}
		if answer := ask(r, "/api/v1/pods?watch=1", "t1"); answer.Code != http.StatusTooManyRequests || !strings.Contains(answer.Body.String(), "ann has 2 open watches") {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
		for _, s := range streams {
			if s.ended() {
				t.Error("a watch within the limit was ended")
			}
			s.cancel()
			<-s.done
		}
		if len(r.limits.by) != 0 {
			t.Errorf("%v", r.limits.by)
		}
	})
}

// A relay that stops is not ready at once, and closes its watches one after the other.
func TestDrain(t *testing.T) {
	inBubble(t, Options{Gate: Everybody{}, DrainTime: 10 * time.Second}, func(t *testing.T, r *Relay, _ *apiserver.Server, stop func()) {
		var streams []*modelStream
		for range 20 {
			streams = append(streams, watchAs(t, r, ""))
		}
		go stop()
		synctest.Wait()
		if answer := ask(r, "/readyz", ""); answer.Code != http.StatusServiceUnavailable {
			t.Errorf("%d", answer.Code)
		}
		open := func() (n int) {
			for _, s := range streams {
				if !s.ended() {
					n++
				}
			}
			return n
		}
		if open() != 20 {
			t.Error("watches are closed at once")
		}
		time.Sleep(5 * time.Second)
		if n := open(); n == 0 || n == 20 {
			t.Errorf("%d of 20 watches are open after half of the time", n)
		}
		time.Sleep(6 * time.Second)
		stop()
		if n := open(); n != 0 {
			t.Errorf("%d watches are open at the end", n)
		}
		if answer := ask(r, "/api/v1/pods?resourceVersion=0", ""); answer.Code != http.StatusServiceUnavailable {
			t.Errorf("%d", answer.Code)
		}
	})
}

// A drain time that is very short ends the watches at once.
func TestShortDrain(t *testing.T) {
	inBubble(t, Options{Gate: Everybody{}, DrainTime: 1}, func(t *testing.T, r *Relay, _ *apiserver.Server, stop func()) {
		s := watchAs(t, r, "")
		stop()
		if !s.ended() {
			t.Error("the watch is open after the relay has stopped")
		}
	})
}
