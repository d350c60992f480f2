package relay

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarnproject/tarn/apiserver"
)

// spoiled is an answer in which versions of four digits are not numbers, while on is set.
// They are in protobuf, behind the number of their field and their length.
type spoiled struct {
	io.ReadCloser
	on *atomic.Bool
}

func (s spoiled) Read(data []byte) (int, error) {
	n, err := s.ReadCloser.Read(data)
	if s.on.Load() {
		copy(data, bytes.ReplaceAll(data[:n], []byte("2\x0410"), []byte("2\x04x0")))
	}
	return n, err
}

type spoiling struct {
	next http.RoundTripper
	on   *atomic.Bool
}

func (s spoiling) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(r)
	if err == nil {
		answer.Body = spoiled{answer.Body, s.on}
	}
	return answer, err
}

// A relay that knows of changes which it cannot serve is not ready, and says how old that
// makes it: its copy follows the origin, and its clients do not.
func TestReadyKnowsWhatIsNotServed(t *testing.T) {
	var on atomic.Bool
	inBubbleThrough(t, func(next http.RoundTripper) http.RoundTripper { return spoiling{next, &on} }, Options{Gate: Everybody{}}, func(t *testing.T, r *Relay, origin *apiserver.Server, _ func()) {
		if err := origin.Put(pod("a", "1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := r.Ready(); err != nil {
			t.Fatal(err)
		}
		on.Store(true)
		if err := origin.Delete(pod("a", "1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Minute)
		if err := r.Ready(); err == nil || !strings.Contains(err.Error(), "is not a number") {
			t.Errorf("it is ready, or says %v", err)
		}
		age, err := strconv.Atoi(ask(r, "/livez", "t").Header().Get(ageHeader))
		if err != nil || time.Duration(age)*time.Millisecond < 3*time.Minute {
			t.Errorf("it says that it is %d ms old: %v", age, err)
		}
	})
}
