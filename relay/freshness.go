package relay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// ageHeader says how old the oldest copy of a relay may be, in milliseconds. It is in the
// answers to probes, and in those to other relays.
const ageHeader = "Tarn-Relay-Age"

// upstreamAge is how old the copies of the origin are, if it is a relay too. A relay sends
// bookmarks while its own origin is away, so its clients would mistake old objects for new
// ones. Answers to a relay have the header; between answers the relay asks for it.
type upstreamAge struct {
	client *http.Client
	url    string
	every  time.Duration

	mu    sync.Mutex
	known bool
	age   time.Duration
	told  time.Time
}

func newUpstreamAge(config *rest.Config, within time.Duration) (*upstreamAge, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &upstreamAge{client: client, url: strings.TrimSuffix(base.String(), "/") + "/livez", every: within / 8}, nil
}

// note records what an answer says.
func (u *upstreamAge) note(header http.Header) {
	milliseconds, err := strconv.ParseInt(header.Get(ageHeader), 10, 64)
	if err != nil || milliseconds < 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.known, u.age, u.told = true, time.Duration(milliseconds)*time.Millisecond, time.Now()
}

// now is the age. One that could not be asked for in time grows.
func (u *upstreamAge) now() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.known {
		return 0
	}
	return u.age + max(0, time.Since(u.told)-2*u.every)
}

func (u *upstreamAge) isRelay() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.known
}

// run asks now and then, until ctx ends. An API server is not asked.
func (u *upstreamAge) run(ctx context.Context) {
	ticker := time.NewTicker(u.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if u.isRelay() {
			u.ask(ctx)
		}
	}
}

// ask asks once. The answer is recorded on its way; without one the age grows.
func (u *upstreamAge) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, u.every)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url, nil)
	if err != nil {
		return
	}
	if answer, err := u.client.Do(request); err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<10))
		_ = answer.Body.Close()
	}
}

// Freshness is how old the oldest copy may be, over all relays on the way to the API
// server; false while a copy has not been read.
func (r *Relay) Freshness() (time.Duration, bool) {
	var oldest time.Duration
	for c := range r.everyCopy() {
		h := c.replica.Health()
		if !h.Synced {
			return 0, false
		}
		oldest = max(oldest, h.Age, unserved(h).Lag)
	}
	return oldest + r.upstream.now(), true
}

// setAge tells relays and probes how old the copies are.
func (r *Relay) setAge(w http.ResponseWriter) {
	if age, ok := r.Freshness(); ok {
		w.Header().Set(ageHeader, fmt.Sprint(age.Milliseconds()))
	}
}
