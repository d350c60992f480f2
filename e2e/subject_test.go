package e2e

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cache"
)

// subject is one copy under test, with a handler and, if it is ours, with a record
// of its Health.
type subject struct {
	kind
	live      live
	replica   replica // nil if not ours
	mirror    *mirror
	requests  *requests
	failures  *failures
	healthLog *healthLog // nil if not ours
	cancel    context.CancelFunc
	done      chan struct{}
}

// startSubject starts a copy; it ends with the test.
func startSubject(t *testing.T, k kind, config *rest.Config) *subject {
	t.Helper()
	asked := &requests{}
	copied, err := k.make(asked.record(config))
	if err != nil {
		t.Fatal(err)
	}
	s := &subject{kind: k, live: copied, replica: copied.replica(), mirror: newMirror(), requests: asked, failures: &failures{}, done: make(chan struct{})}
	if err := copied.onFailure(s.failures.note); err != nil {
		t.Fatal(err)
	}
	if err := copied.follow(s.mirror); err != nil {
		t.Fatal(err)
	}
	if ours := s.replica != nil; ours != k.ours {
		t.Fatalf("%s: is it ours? %v; it should be %v", k.name, ours, k.ours)
	}
	if s.replica != nil {
		s.healthLog = recordHealth(s.replica.Health)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() {
		defer close(s.done)
		copied.run(ctx)
	}()
	t.Cleanup(func() { s.stop(t) })
	return s
}

// A copy of ours ends within a second, plus what a busy machine may take to
// notice. client-go sleeps through its backoff.
const (
	oursStopsWithin     = 3 * time.Second
	clientGoStopsWithin = time.Minute
)

// stop ends the copy, which must not take long, and its health log.
func (s *subject) stop(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
		return
	default:
	}
	timeout := clientGoStopsWithin
	if s.ours {
		timeout = oursStopsWithin
	}
	s.cancel()
	select {
	case <-s.done:
	case <-time.After(timeout):
		t.Errorf("%s: still running %v after it was stopped", s.name, timeout)
		<-s.done
	}
	if s.healthLog == nil {
		return
	}
	s.healthLog.end()
	if h := s.replica.Health(); h.State != tarn.StateStopped {
		t.Errorf("%s: it has stopped, but its health says %s", s.name, h)
	}
	for _, complaint := range s.healthLog.complaints() {
		t.Errorf("%s: health: %s", s.name, complaint)
	}
	t.Logf("%s: what Health showed:\n%s  and its error handler got:\n%s", s.name, s.healthLog, s.failures)
}

// waitSynced waits until the copy has its first state.
func (s *subject) waitSynced(t *testing.T, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	if s.replica != nil {
		if err := s.replica.WaitSynced(ctx); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		return
	}
	if !cache.WaitForCacheSync(ctx.Done(), s.live.hasSynced) {
		t.Fatalf("%s: not synced after %v", s.name, within)
	}
}

// eventually waits until try has no error.
func eventually(t *testing.T, within time.Duration, try func() error) error {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := try()
		if err == nil || time.Now().After(deadline) || t.Context().Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// healthBecomes waits for a Health that fits, and says what it was waiting for
// if none comes.
func (s *subject) healthBecomes(t *testing.T, within time.Duration, what string, fits func(tarn.Health) bool) {
	t.Helper()
	err := eventually(t, within, func() error {
		if h := s.replica.Health(); !fits(h) {
			return errors.New(h.String())
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s: health does not say that %s after %v: %v", s.name, what, within, err)
	}
}

// healthShowed checks that one entry since a time matches.
func (s *subject) healthShowed(t *testing.T, since time.Time, what string, fits func(tarn.Health) bool) {
	t.Helper()
	if !slices.ContainsFunc(s.healthLog.since(since), fits) {
		t.Errorf("%s: health never said that %s", s.name, what)
	}
}

func failing(h tarn.Health) bool   { return h.Err != nil }
func following(h tarn.Health) bool { return h.Synced && h.Err == nil && h.State == tarn.StateWatching }
