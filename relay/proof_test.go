package relay

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
)

// busyOrigin ends the first short watches without a bookmark, as a server under load does.
type busyOrigin struct {
	http.RoundTripper
	left int
}

func (o *busyOrigin) RoundTrip(r *http.Request) (*http.Response, error) {
	if o.left == 0 || !strings.Contains(r.URL.RawQuery, "timeoutSeconds=3&") {
		return o.RoundTripper.RoundTrip(r)
	}
	o.left--
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
	time.Sleep(quietWatch)
	return answer.Result(), nil
}

// A watch with initial events waits for a proof that the copy is as new as the origin, also
// if the origin does not send a bookmark in time. Otherwise each of a thousand clients that
// start at the same moment, when the origin is busy, would be a watch there.
func TestProofFromABusyOrigin(t *testing.T) {
	busy := &busyOrigin{}
	wrap := func(next http.RoundTripper) http.RoundTripper {
		busy.RoundTripper = next
		return busy
	}
	inBubbleThrough(t, wrap, Options{Gate: Everybody{}}, func(t *testing.T, r *Relay, origin *apiserver.Server, _ func()) {
		if err := origin.Put(pod("a", "1"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}); err != nil {
			t.Fatal(err)
		}
		busy.left = 1
		answer := ask(r, "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=30", "")
		body, _ := io.ReadAll(answer.Body)
		if !strings.Contains(string(body), `"name":"a"`) {
			t.Errorf("%d %s", answer.Code, body)
		}
		s := r.Stats()[0]
		if busy.left != 0 || s.Forwarded != 0 {
			t.Errorf("the origin answered: %v; %d short watches were not asked for", s.ForwardedBy, busy.left)
		}
	})
}

// Clients that arrive at the same moment share a proof. A real server sends no bookmark to a
// watch from the version that it has, so those that began a second proof once the first had
// succeeded would wait until it fails.
func TestProofIsShared(t *testing.T) {
	inBubbleThrough(t, nil, Options{Gate: Everybody{}}, func(t *testing.T, r *Relay, origin *apiserver.Server, _ func()) {
		if err := origin.Put(pod("a", "1"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}); err != nil {
			t.Fatal(err)
		}
		var clients sync.WaitGroup
		for range 20 {
			clients.Go(func() {
				answer := ask(r, "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=30", "")
				if !strings.Contains(answer.Body.String(), `"name":"a"`) {
					t.Errorf("%d %s", answer.Code, answer.Body)
				}
			})
		}
		clients.Wait()
		if s := r.Stats()[0]; s.QuietWatches != 1 || s.Forwarded != 0 {
			t.Errorf("%d proofs, %d went to the origin: %v", s.QuietWatches, s.Forwarded, s.ForwardedBy)
		}
	})
}
