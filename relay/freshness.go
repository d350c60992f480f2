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
// bookmarks while its own origin is unreachable, so its clients would mistake old objects for new
// ones. Answers to a relay have the header; between answers the relay asks for it.
type upstreamAge struct {
	client *http.Client
	url    string
	every  time.Duration

	mu    sync.Mutex
	known bool
	age   time.Duration
	told  time.Time
	// direct says that the last probe was answered by an API server: the origin has changed,
	// or is one of several endpoints.
	direct bool
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
	return &upstreamAge{client: client, url: strings.TrimSuffix(base.String(), "/") + "/livez", every: max(within/8, time.Millisecond)}, nil
}

// note records what an answer says.
func (u *upstreamAge) note(header http.Header) {
	text := header.Get(ageHeader)
	if text == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.direct = false
	milliseconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || milliseconds < 0 {
		return
	}
	u.known, u.age, u.told = true, time.Duration(milliseconds)*time.Millisecond, time.Now()
}

// noteProbe records who answered a probe. An error may be that of a proxy before the origin.
func (u *upstreamAge) noteProbe(answer *http.Response) {
	if answer.Header.Get(ageHeader) != "" {
		return // it was noted
	}
	switch answer.StatusCode {
	case http.StatusOK, http.StatusUnauthorized, http.StatusForbidden:
		u.mu.Lock()
		defer u.mu.Unlock()
		u.direct = true
	}
}

// now is the age. One that could not be asked for in time grows.
func (u *upstreamAge) now() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.known || u.direct {
		return 0
	}
	return u.age + max(0, time.Since(u.told)-2*u.every)
}

// isRelay says that the origin is a relay, or was one and may be one again.
func (u *upstreamAge) isRelay() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.known
}

// run asks now and then, until ctx ends. An origin that was never a relay is not asked.
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

// ask asks once. An age is recorded on its way; without an answer it grows.
func (u *upstreamAge) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, u.every)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url, nil)
	if err != nil {
		return
	}
	if answer, err := u.client.Do(request); err == nil {
		u.noteProbe(answer)
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

// setAge tells relays and probes how old the copies are. Without the header the relay would be
// taken for an API server.
func (r *Relay) setAge(w http.ResponseWriter) {
	text := "unknown"
	if age, ok := r.Freshness(); ok {
		text = fmt.Sprint(age.Milliseconds())
	}
	w.Header().Set(ageHeader, text)
}
