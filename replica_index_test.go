package tarn_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// The same objects are found whether the store has indexes or not, while the
// replica runs and after the index was dropped.
func TestIndexBy(t *testing.T) {
	depth := func(l Lake) string {
		switch {
		case l.Level < 0:
			panic("below the ground")
		case l.Level < 10:
			return "shallow"
		}
		return "deep"
	}
	for name, wrap := range map[string]func(*memory.Store[Lake]) tarn.ReadStore[Lake]{
		"memory":          func(s *memory.Store[Lake]) tarn.ReadStore[Lake] { return s },
		"memory behind":   func(s *memory.Store[Lake]) tarn.ReadStore[Lake] { return fronted{bare{s}} },
		"without indexes": func(s *memory.Store[Lake]) tarn.ReadStore[Lake] { return bare{s} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := lakesAt(5)
				source.Set("broken", -1)
				var mu sync.Mutex
				var bad []string
				store := memory.New[Lake]()
				lakes := running(t, "lakes", source, wrap(store), tarn.Options[Lake]{OnBad: func(_ context.Context, b tarn.BadObject) {
					mu.Lock()
					defer mu.Unlock()
					bad = append(bad, fmt.Sprint(b.Key, ": ", b.Err))
				}})
				byDepth, again := tarn.IndexBy(lakes, depth), tarn.IndexBy(lakes, depth)
				again.Drop()
				check := func(want string) {
					t.Helper()
					for i, x := range []*tarn.Index[Lake]{byDepth, again} {
						var got []string
						for _, value := range []string{"shallow", "deep", "none"} {
							var names []string
							for lake := range x.Get(value) {
								names = append(names, lake.Name)
							}
							slices.Sort(names)
							got = append(got, fmt.Sprint(value, names))
						}
						if have := strings.Join(got, " "); have != want {
							t.Errorf("index %d finds %s, want %s", i, have, want)
						}
					}
				}
				check("shallow[upper tarn] deep[] none[]")
				source.Set("lower tarn", 20)
				source.Set("middle tarn", 7)
				source.Set("broken later", -5)
				synctest.Wait()
				check("shallow[middle tarn upper tarn] deep[lower tarn] none[]")
				source.Set("upper tarn", 30)
				source.Set("broken", 1)
				synctest.Wait()
				check("shallow[broken middle tarn] deep[lower tarn upper tarn] none[]")
				for range byDepth.Get("deep") {
					break
				}

				_, indexed := memory.Of(lakes)
				health := lakes.Health()
				mu.Lock()
				defer mu.Unlock()
				if !indexed {
					if len(bad) > 0 || len(store.IndexFuncs()) > 0 {
						t.Errorf("there is no index, but %q is reported", bad)
					}
					return
				}
				if n := len(store.IndexFuncs()); n != 1 {
					t.Errorf("the store has %d indexes, want the one that was not dropped", n)
				}
				text := strings.Join(bad, "\n")
				if !strings.Contains(text, "broken: index") || !strings.Contains(text, "broken later: index") || !strings.Contains(text, "below the ground") {
					t.Errorf("reported was:\n%s", text)
				}
				if len(health.Bad) != 1 || health.Bad[0].Key != "broken later" {
					t.Errorf("bad objects %v, want the one that was not mended", health.Bad)
				}
			})
		})
	}
}

// In a replica of several sections each is notified of its own objects.
func TestIndexByReportsToTheSection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sections []tarn.Section[Lake]
		for _, name := range []string{"north", "south"} {
			source := &Lakes{now: map[string]Lake{}, more: make(chan struct{})}
			source.Set(name, 1)
			sections = append(sections, tarn.Section[Lake]{Name: name, Source: source, Prefix: tarn.Key(name)})
		}
		lakes, err := tarn.NewReplicaOf(sections, memory.New[Lake](), tarn.Options[Lake]{Name: "lakes", OnBad: func(context.Context, tarn.BadObject) {}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go lakes.Run(ctx)
		defer func() {
			cancel()
			<-lakes.Done()
		}()
		if err := lakes.WaitSynced(ctx); err != nil {
			t.Fatal(err)
		}
		byName := tarn.IndexBy(lakes, func(l Lake) string {
			if l.Name == "south" {
				panic("no south")
			}
			return l.Name
		})
		for lake := range byName.Get("south") {
			t.Errorf("%v was found", lake)
		}
		each := lakes.Health().Sections
		if len(each) != 2 || each[0].BadCount != 0 || each[1].BadCount != 1 {
			t.Errorf("bad objects by section: %v", each)
		}
	})
}
