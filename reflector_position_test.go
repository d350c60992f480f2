package tarn_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// A store is told with each state whether something is missing from it.
func TestWhatIsMissingIsKept(t *testing.T) {
	poison := func(o *thing) (*thing, error) {
		if o.text == "poison" {
			return nil, errors.New("poisoned")
		}
		return o, nil
	}
	tests := []struct {
		name, kept, server, at string
		fill                   bool
	}{
		{name: "nothing", kept: "none", server: "list any -> 5: a@3\nwatch 5 -> mod a@6; hang", at: "5 true, 6 true"},
		{name: "in a list", kept: "none", server: "list any -> 5: a@3=poison b@4\nwatch 5 -> mod b@6; hang", at: "5 false, 6 false"},
		{name: "in a first state that flows", fill: true, kept: "none", server: "list latest -> 5: a@3=poison\nwatch 5 -> hang", at: "5 false"},
		{name: "until it is good", kept: "5: a@3", server: "list latest limit=1 -> 5: a@3\nwatch 5 -> mod a@6=poison; wait 1s; mod a@7; wait 1s; bookmark 8; hang", at: "6 false, 7 false, 8 true"},
		{name: "an event that cannot be read", kept: "5: a@3", server: "list latest limit=1 -> 5: a@3\nwatch 5 -> mod nil; wait 1s; bookmark 8; hang", at: "8 false"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := &diskStore{ReadStore: memory.New[*thing](), kept: test.kept}
				var store tarn.ReadStore[*thing] = disk
				if test.fill {
					store = &fillStore{diskStore: disk}
				}
				source := newScripted(t, test.server)
				r, err := tarn.NewReplica(source, store, tarn.Options[*thing]{Transform: poison, OnBad: func(context.Context, tarn.BadObject) {}})
				if err != nil {
					t.Fatal(err)
				}
				stop := start(t, r.Run)
				<-source.over
				time.Sleep(5 * time.Second)
				synctest.Wait()
				stop()
				if got := strings.Join(disk.at, ", "); got != test.at {
					t.Errorf("the store was told %q, want %q", got, test.at)
				}
			})
		})
	}
}

// Versions before and after a rewind, or of another source, are of other epochs.
func TestEpochs(t *testing.T) {
	for _, test := range []struct {
		name, kept, server string
		other              bool
		at                 string
	}{
		{name: "no rewind", kept: "none", server: "list any -> 5: a@3\nwatch 5 -> mod a@6; hang", at: "5, 6"},
		{name: "a rewind", kept: "5: a@3", server: "list latest limit=1 -> 4: a@2\nlist latest -> 4: a@2\nwatch 4 -> mod a@6; hang",
			at: "4 2000-01-01T00:00:00Z, 6 2000-01-01T00:00:00Z"},
		{name: "another source", kept: "5: a@3", other: true, server: "list latest -> 7: a@7\nwatch 7 -> hang", at: "7 2000-01-01T00:00:00Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := &diskStore{ReadStore: memory.New[*thing](), kept: test.kept, other: test.other}
				source := newScripted(t, test.server)
				r, err := tarn.NewReplica(source, disk, tarn.Options[*thing]{OnError: func(context.Context, error) {}})
				if err != nil {
					t.Fatal(err)
				}
				stop := start(t, r.Run)
				<-source.over
				synctest.Wait()
				stop()
				if got := strings.Join(disk.epochs, ", "); got != test.at {
					t.Errorf("the store was told %q, want %q", got, test.at)
				}
			})
		})
	}
}
