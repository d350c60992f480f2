package tarn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// Health names the objects that a sink refuses, until a later state is taken.
func TestSinkRefusesObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		sink := newFakeSink(SinkPolicy[*entry]{Name: "sink", EveryState: true})
		life := attached(t, r, sink)
		defer func() { _ = life.stop() }()
		settle()
		refuses := errors.New("it is too large")
		sink.mu.Lock()
		sink.refuse = func(_ context.Context, b Batch[*entry]) error {
			var bad ObjectErrors
			for _, c := range b.Changes {
				if c.Key == "b" || c.Key == "c" {
					bad = append(bad, BadObject{Key: c.Key, Version: c.Version, Err: refuses})
				}
			}
			if bad == nil {
				return nil
			}
			return bad
		}
		sink.mu.Unlock()
		wants := func(keys string) {
			t.Helper()
			settle()
			h := life.Health().Sinks[0]
			var named []string
			for _, b := range h.Bad {
				named = append(named, string(b.Key))
			}
			if got := strings.Join(named, " "); got != keys || h.BadCount != len(named) || h.Err != nil || h.Pending != 0 {
				t.Errorf("Health names %q (%d), want %q: %s", got, h.BadCount, keys, h)
			}
		}
		wants("")
		r.put("b", "")
		r.put("c", "")
		wants("b c")
		if text := life.Health().Sinks[0].String(); !strings.Contains(text, "2 objects refused, such as b: it is too large") {
			t.Errorf("Health says %s", text)
		}
		r.put("a", "")
		wants("b c")
		r.remove("b")
		sink.mu.Lock()
		sink.refuse = nil
		sink.mu.Unlock()
		wants("c")
		r.put("c", "")
		wants("")
	})
}
