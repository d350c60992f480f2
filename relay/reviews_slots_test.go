package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
)

// slowReviewer is an origin that takes a second for a TokenReview. Everybody whom it knows may
// do everything.
type slowReviewer struct {
	mu    sync.Mutex
	users map[string]string // by token
	// open are TokenReviews that have not been answered yet, most the highest number of them.
	open, most int
}

func (o *slowReviewer) RoundTrip(r *http.Request) (*http.Response, error) {
	var review any
	if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
		asked := &authenticationv1.TokenReview{}
		if err := json.NewDecoder(r.Body).Decode(asked); err != nil {
			return nil, err
		}
		o.count(1)
		time.Sleep(time.Second)
		o.count(-1)
		o.mu.Lock()
		asked.Status.User.Username = o.users[asked.Spec.Token]
		o.mu.Unlock()
		asked.Status.Authenticated = asked.Status.User.Username != ""
		review = asked
	} else {
		review = &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}
	}
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(body))), Request: r,
	}, nil
}

func (o *slowReviewer) count(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open += n
	o.most = max(o.most, o.open)
}

func (o *slowReviewer) forget(token string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.users, token)
}

func (o *slowReviewer) gate(t *testing.T) *Reviews {
	t.Helper()
	gate, err := NewReviews(&rest.Config{Host: "http://origin", Transport: o, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

// A flood of invented tokens neither floods the origin nor delays a caller whose token the
// relay knows, also when the answer about that token is too old. A watch of a known token ends
// in time when the token is revoked. Those that wait for too long are told to come again.
func TestFloodOfTokens(t *testing.T) {
	o := &slowReviewer{users: map[string]string{"t1": "ann", "t2": "ben"}}
	inBubble(t, Options{Gate: Everybody{}}, func(t *testing.T, r *Relay, _ *apiserver.Server, _ func()) {
		r.gate = o.gate(t) // made in the bubble, whose time waits for what is in it only
		const list, invented = "/api/v1/pods?resourceVersion=0", 1000
		asAnn := func(within time.Duration) {
			t.Helper()
			began := time.Now()
			if answer := ask(r, list, "t1"); answer.Code != http.StatusOK || time.Since(began) > within {
				t.Errorf("%d after %v: %s", answer.Code, time.Since(began), answer.Body)
			}
		}
		ben := watchAs(t, r, "t2")
		time.Sleep(reviewAge)
		o.forget("t2") // the next review is during the flood
		asAnn(time.Second)
		time.Sleep(reviewAge - 2*time.Second)
		var flood sync.WaitGroup
		var mu sync.Mutex
		answers := map[int]int{}
		for i := range invented {
			flood.Go(func() {
				began := time.Now()
				answer := ask(r, list, fmt.Sprint("invented-", i))
				mu.Lock()
				defer mu.Unlock()
				answers[answer.Code]++
				if took := time.Since(began); took > tokenReviewWait+time.Second {
					t.Errorf("a request waited for %v", took)
				}
				if answer.Code == http.StatusTooManyRequests && answer.Header().Get("Retry-After") == "" {
					t.Error("nothing says when to come again")
				}
			})
		}
		synctest.Wait()
		asAnn(0)
		time.Sleep(3 * time.Second) // the answer about ann is too old now
		asAnn(time.Second)
		flood.Wait()
		if answers[http.StatusTooManyRequests] < invented/2 || answers[http.StatusUnauthorized] < tokenReviewsAtOnce || len(answers) != 2 {
			t.Errorf("answers by status: %v", answers)
		}
		if refused := r.Health().Refused; refused["limit"] != int64(answers[http.StatusTooManyRequests]) {
			t.Errorf("%v were counted, of %v", refused, answers)
		}
		if o.most > 2*tokenReviewsAtOnce {
			t.Errorf("the origin had %d TokenReviews at once", o.most)
		}
		time.Sleep(3 * time.Second)
		if !ben.ended() {
			t.Error("the watch of a revoked token is open")
		}
		ben.cancel()
		<-ben.done
	})
}

// Refusals do not displace what is known about others.
func TestRefusalsAreKeptApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m answerCache[int, string]
		ask := func(key int, answer string, err error) (asked bool) {
			_, _ = m.get(t.Context(), key, func(context.Context) (string, error) {
				asked = true
				return answer, err
			})
			return asked
		}
		ask(-1, "ann", nil)
		for i := range mostReviews + 1 {
			ask(i, "", apierrors.NewUnauthorized("Unauthorized"))
		}
		if ask(-1, "ann", nil) {
			t.Error("a good answer was forgotten")
		}
		if ask(mostReviews, "", nil) {
			t.Error("the last refusal was forgotten")
		}
		if len(m.others) > mostReviews {
			t.Errorf("%d refusals are kept", len(m.others))
		}
		time.Sleep(reviewAge)
		if !m.succeeded(-1) || !ask(-1, "", apierrors.NewUnauthorized("Unauthorized")) || m.succeeded(-1) {
			t.Error("a good answer that is too old is not replaced by a refusal")
		}
	})
}

// Only some requests wait for a review. One that leaves makes room for another.
func TestWaitingForReviewSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newReviewSlots(1, 1)
		release, err := s.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leaving, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := s.take(leaving)
			left <- err
		}()
		synctest.Wait()
		began := time.Now()
		if _, err := s.take(t.Context()); !apierrors.IsTooManyRequests(err) || time.Since(began) > 0 {
			t.Errorf("one too many got %v after %v", err, time.Since(began))
		}
		leave()
		if err := <-left; err != context.Canceled {
			t.Error(err)
		}
		if _, err := s.take(t.Context()); !apierrors.IsTooManyRequests(err) || time.Since(began) != tokenReviewWait {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		go func() {
			time.Sleep(time.Second)
			release()
		}()
		if _, err := s.take(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
