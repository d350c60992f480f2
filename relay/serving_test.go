package relay

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarnproject/tarn/apiserver"
)

// faultyGate panics when it is asked.
type faultyGate struct{ Everybody }

func (faultyGate) Allow(context.Context, Access) error { panic("the gate is broken") }

// A fault while a watch is opened, which is done in another goroutine, is one of the handler.
// net/http survives it; nothing stays open.
func TestFaultWhileOpening(t *testing.T) {
	inBubbleThrough(t, nil, Options{Gate: faultyGate{}}, func(t *testing.T, r *Relay, _ *apiserver.Server, _ func()) {
		var fault any
		func() {
			defer func() { fault = recover() }()
			ask(r, "/api/v1/pods?watch=1&resourceVersion=1", "")
		}()
		if text, _ := fault.(string); !strings.Contains(text, "the gate is broken") || !strings.Contains(text, "faultyGate") {
			t.Errorf("the handler ended with %v", fault)
		}
		if open := r.limits.open(); open != 0 {
			t.Errorf("%d watches are open", open)
		}
	})
}

// A fault in a watch whose handler has returned ends that watch only.
func TestFaultInAWatch(t *testing.T) {
	var log bytes.Buffer
	r := &Relay{options: Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	func() {
		defer r.recoverFault(httptest.NewRequest("GET", "/api/v1/pods?watch=1", nil))
		panic("a fault")
	}()
	if r.counts.refused.read()["fault"] != 1 || !strings.Contains(log.String(), "a fault") || !strings.Contains(log.String(), "/api/v1/pods") {
		t.Errorf("%v, %s", r.counts.refused.read(), log.String())
	}
}

// open is how many watches are open.
func (l *limits) open() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.by {
		n += u.watches
	}
	return n
}
