package tarn_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/story"
)

// storyOptions are the options that the settings of a story stand for.
func storyOptions(t *testing.T, s *story.Story, seen *transcript) tarn.Options[*thing] {
	o := tarn.Options[*thing]{
		Name:    "things",
		OnError: func(_ context.Context, err error) { seen.add("errors", describeError(err)) },
		OnBad: func(_ context.Context, b tarn.BadObject) {
			seen.add("reported", fmt.Sprintf("%s: %s", cmp.Or(string(b.Key), "?"), describeError(b.Err)))
		},
		WatchListDeadline: s.With.Duration("deadline", 0),
		ResyncPeriod:      s.With.Duration("resync", 0),
	}
	for name, value := range s.With {
		switch name {
		case "watchlist":
			o.WatchList = true
		case "pagesize":
			o.PageSize = func() int64 { return s.With.Number(name) }
		case "nosilencelimit":
			o.SilenceLimit = -1
		case "retryinternal":
			o.RetryInternal = func() time.Duration { return s.With.Duration(name, 0) }
		case "resyncs":
			o.ShouldResync = inTurn(t, value)
		case "transform":
			o.Transform = storyTransform(value)
		case "deadline", "resync", "for", "reflector", "store", "refuses", "calls": // read where they matter
		default:
			t.Fatalf("nobody knows what the setting %q means", name)
		}
	}
	return o
}

// storyTransform is the transform of a story: "fail:a@6" and "panic:a@6" do so for
// that object only, "prefix:x-" puts x- before each name. Two of them are separated by
// a comma.
func storyTransform(setting string) func(*thing) (*thing, error) {
	if first, second, two := strings.Cut(setting, ","); two {
		return func(o *thing) (*thing, error) {
			o, err := storyTransform(first)(o)
			if err != nil {
				return nil, err
			}
			return storyTransform(second)(o)
		}
	}
	deed, what, _ := strings.Cut(setting, ":")
	return func(o *thing) (*thing, error) {
		switch {
		case deed == "prefix":
			c := *o
			c.name = what + strings.TrimPrefix(c.name, what)
			return &c, nil
		case o.String() != what:
			return o, nil
		case deed == "panic":
			panic("the transform panicked")
		}
		return nil, errors.New("the transform failed")
	}
}

// inTurn gives the answers of "yes,no", one after the other. All of them must be
// asked for, and no more.
func inTurn(t *testing.T, setting string) func() bool {
	answers := strings.Split(setting, ",")
	asked := 0
	t.Cleanup(func() {
		if asked != len(answers) {
			t.Errorf("asked %d times whether to resync, want %d", asked, len(answers))
		}
	})
	return func() bool {
		asked++
		return asked <= len(answers) && answers[asked-1] == "yes"
	}
}
