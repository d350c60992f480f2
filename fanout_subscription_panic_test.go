package tarn

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
)

// boom panics, from a function whose name can be found in the stack.
func boom(Change[*entry]) { panic("boom") }

// Without OnPanic a panic is logged with the name of the subscription and the
// stack, and then continues. The subscription ends with it.
func TestPanicGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := newCopy(t, newRemote("a"), Options[*entry]{Logger: slog.New(slog.NewTextHandler(&log, nil))}).start()
		c.subscribe(SubscribeOptions{})
		for i, opts := range []SubscribeOptions{
			{Inline: true, Name: "the panicky one"},
			{Inline: true}, // the third
		} {
			log.Reset()
			s, err := c.Subscribe(boom, opts)
			if err != nil {
				t.Fatal(err)
			}
			func() {
				defer func() {
					if v := recover(); v != "boom" {
						t.Errorf("recovered %v", v)
					}
				}()
				s.Run(t.Context())
			}()
			name := []string{"the panicky one", "subscriber 3"}[i]
			for _, part := range []string{name, "key=a", "panic=boom", "tarn.boom"} {
				if !strings.Contains(log.String(), part) {
					t.Errorf("the log does not say %q: %s", part, log.String())
				}
			}
			if !isClosed(s.Done()) {
				t.Error("not done after a panic")
			}
			if n := len(c.fanout.followers); n != 1 {
				t.Errorf("%d followers after a panic, want the other one", n)
			}
		}
	})
}

func TestPanicIsIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRemote("a", "b")
		c := newCopy(t, r, Options[*entry]{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		var values []any
		var stacks []string
		a := c.subscribe(SubscribeOptions{OnPanic: func(value any, stack []byte) {
			values, stacks = append(values, value), append(stacks, string(stack))
		}})
		a.pause = func(c Change[*entry]) {
			if c.Key == "a" {
				boom(c)
			}
		}
		c.start()
		synctest.Wait()
		a.wantHeard("*b2 |")
		if len(values) != 1 || values[0] != "boom" || !strings.Contains(stacks[0], "tarn.boom") {
			t.Errorf("OnPanic got %v with %s", values, stacks)
		}
		if lag := a.Lag(); lag.Pending != 0 {
			t.Errorf("a change whose function panicked still waits: %+v", lag)
		}
		if log.Len() > 0 {
			t.Errorf("an isolated panic is logged too: %s", log.String())
		}
	})
}
