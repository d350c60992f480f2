package tarn

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var errUnreachable = errors.New("away")

func policy(name string) SinkPolicy[*entry] { return SinkPolicy[*entry]{Name: name} }

// settle lets everything happen that is due.
func settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

func TestEmptySinkGetsTheWholeContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		disk := loadedSink{fakeSink: newFakeSink(policy("disk"))}
		life := attached(t, r, disk)
		settle()
		disk.wantHeard(t, "whole +a1 +b2 @2")
		r.put("a", "")
		settle()
		r.remove("b")
		settle()
		disk.wantHeard(t, "~a3 @3", "-b @4")
		_ = life.stop()

		warm := newFakeSink(policy("sink"))
		life = attached(t, r, disk, warm)
		settle()
		warm.wantHeard(t, "whole +a3 @4")
		_ = life.stop()
	})
}

func TestSinkWhereTheCopyIsGetsOnlyPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		disk, sink := loadedSink{fakeSink: newFakeSink(policy("disk"))}, newFakeSink(policy("sink"))
		life := attached(t, r, disk, sink)
		settle()
		_ = life.stop()
		disk.wantHeard(t, "whole +a1 +b2 @2")
		sink.wantHeard(t, "whole +a1 +b2 @2")

		life = attached(t, r, disk, sink)
		settle()
		r.bookmark()
		settle()
		_ = life.stop()
		disk.wantHeard(t, "@3")
		sink.wantHeard(t, "@3")
	})
}

// behind has a sink miss what happens to a collection in one life of its disk.
func behind(t *testing.T, r *remote, sink Sink[*entry]) (disk loadedSink) {
	disk = loadedSink{fakeSink: newFakeSink(policy("disk"))}
	life := attached(t, r, disk, sink)
	settle()
	_ = life.stop()
	life = attached(t, r, disk)
	settle()
	r.put("b", "")  // 4
	r.put("d", "")  // 5
	r.remove("a")   // 6
	r.put("d", "x") // 7
	settle()
	_ = life.stop()
	return disk
}

func TestSinkBehindIsGivenTheDifferences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b", "c")
		sink := listedSink{newFakeSink(policy("sink"))}
		disk := behind(t, r, sink)
		sink.heard()
		life := attached(t, r, disk, sink)
		settle()
		sink.wantHeard(t, "~b4 +d7 -a @7 (after 3 to 7 reconciled)")
		sink.wantState(t, r)
		if h := life.Health(); h.Sinks[1].Gaps != 1 {
			t.Errorf("health counts %d gaps, want 1", h.Sinks[1].Gaps)
		}
		_ = life.stop()
	})
}

func TestSinkThatCannotListIsGivenEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b", "c")
		sink := newFakeSink(policy("sink"))
		disk := behind(t, r, sink)
		sink.heard()
		life := attached(t, r, disk, sink)
		settle()
		sink.wantHeard(t, "whole +b4 +c3 +d7 @7 (after 3 to 7 reconciled)")
		_ = life.stop()
	})
}

// ahead makes a sink that has come to version 4 and a disk that stayed at 2.
func ahead(t *testing.T, r *remote) (disk loadedSink, sink listedSink) {
	disk, sink = loadedSink{fakeSink: newFakeSink(policy("disk"))}, listedSink{newFakeSink(policy("sink"))}
	life := attached(t, r, disk, sink)
	settle()
	disk.refuse = func(context.Context, Batch[*entry]) error { return errUnreachable }
	r.put("a", "") // 3
	settle()
	r.remove("b") // 4
	settle()
	_ = life.stop()
	disk.allow()
	sink.wantHeard(t, "whole +a1 +b2 @2", "~a3 @3", "-b @4")
	disk.wantHeard(t, "whole +a1 +b2 @2")
	return disk, sink
}

func TestSinkAheadIsNotGivenAgainWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		disk, sink := ahead(t, r)
		r.put("c", "") // 5
		life := attached(t, r, disk, sink)
		settle()
		r.put("c", "") // 6
		settle()
		sink.wantState(t, r)
		disk.wantState(t, r)
		// It depends on how many events come at a time whether 5 is a batch of its own.
		if got := sink.heard(); got != "+c5 @5\n~c6 @6" {
			t.Errorf("the sink committed\n%s", indent(got))
		}
		_ = life.stop()
	})
}

func TestSinkAheadIsComparedAfterARelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		disk, sink := ahead(t, r)
		r.put("c", "") // 5
		r.compact()
		life := attached(t, r, disk, sink)
		settle()
		sink.wantHeard(t, "+c5 @5 (after 4 to 5 reconciled)")
		sink.wantState(t, r)
		_ = life.stop()
	})
}

// A source that was restored to a version which the copy has not reached looks to the copy
// as if nothing had happened. The sink has seen later versions, so it must not mistake
// those that come for what it has.
func TestSinkAheadOfASourceThatWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		before := r.state()
		disk, sink := ahead(t, r)
		r.restore(2, before)
		r.put("a", "other") // 3 again
		life := attached(t, r, disk, sink)
		settle()
		r.put("b", "")
		settle()
		sink.wantState(t, r)
		disk.wantState(t, r)
		if got := sink.heard(); got != "!a3 +b2 @3 (after 4 to 3 rewound)\n~b4 @4" {
			t.Errorf("the sink committed\n%s", indent(got))
		}
		_ = life.stop()
	})
}

// The same versions in another epoch may be other content.
func TestSinkOfAnEarlierEpochIsNotComparedByVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		before := r.state()
		sink := listedSink{newFakeSink(policy("sink"))}
		disk := loadedSink{fakeSink: newFakeSink(policy("disk"))}
		r.put("a", "") // 3
		life := attached(t, r, disk, sink)
		settle()
		_ = life.stop()
		sink.wantHeard(t, "whole +a3 +b2 @3")

		r.restore(2, before)
		life = attached(t, r, disk)
		settle()
		r.put("a", "other") // 3 again
		r.put("b", "")
		settle()
		_ = life.stop()

		life = attached(t, r, disk, sink)
		settle()
		sink.wantState(t, r)
		sink.wantHeard(t, "!a3 !b4 @4' (after 3 to 4 rewound)")
		_ = life.stop()
	})
}

// Two copies that lack something need not lack the same.
func TestSinkThatLacksSomethingIsCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		sink := listedSink{newFakeSink(policy("sink"))}
		sink.positions.Reset(Position{Version: "2"})
		bad := "a"
		life := newCopy(t, r, Options[*entry]{Sinks: []Sink[*entry]{sink}, OnBad: func(context.Context, BadObject) {},
			Transform: func(e *entry) (*entry, error) {
				if e.name == bad {
					return nil, errors.New("bad")
				}
				return e, nil
			}})
		sink.opening = func(context.Context) error { // the copy is at 2 as well, without a
			time.Sleep(2 * sinkOpenWait)
			return nil
		}
		life.start()
		settle()
		sink.wantHeard(t, "+b2 @2?")
		_ = life.stop()
	})
}

// Nor is it known which states a sink lacks if the source does not say its version.
func TestSinkIsComparedAtAnUnknownVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		r.versionless = true
		sink := listedSink{newFakeSink(policy("sink"))}
		sink.positions.Reset(At("93"))
		life := newCopy(t, r, Options[*entry]{Sinks: []Sink[*entry]{sink}, OnBad: func(context.Context, BadObject) {},
			Transform: func(e *entry) (*entry, error) {
				if e.name == "a" {
					return nil, errors.New("bad")
				}
				return e, nil
			}}).start()
		settle()
		sink.wantHeard(t, "+b2 (after 93 to  reconciled)")
		_ = life.stop()
	})
}

// The copy cannot take an object and keeps its last good state, which is older than what
// the sink has seen.
func TestSinkIsToldThatAStateIsOlderThanItsPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		disk, sink := loadedSink{fakeSink: newFakeSink(policy("disk"))}, listedSink{newFakeSink(policy("sink"))}
		life := attached(t, r, disk, sink)
		settle()
		_ = life.stop()
		r.remove("a")     // 3
		r.put("a", "bad") // 4
		delete(sink.has, "a")
		sink.positions.Reset(Position{Version: "4"})
		sink.heard()

		life = newCopy(t, r, Options[*entry]{Sinks: []Sink[*entry]{disk, sink}, OnBad: func(context.Context, BadObject) {},
			Transform: func(e *entry) (*entry, error) {
				if e.text == "bad" {
					return nil, errors.New("bad")
				}
				return e, nil
			}})
		r.compact()
		life.start()
		settle()
		sink.wantHeard(t, "!a1 @4?")
		_ = life.stop()
	})
}

func TestSinkThatIsAwayDoesNotHoldUpTheCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		var sinks []Sink[*entry]
		var fakes []*fakeSink
		back := time.Now().Add(time.Minute)
		for _, name := range []string{"one", "two", "three"} {
			s := newFakeSink(policy(name))
			s.has = r.state()
			s.positions.Reset(At("1"))
			s.opening = func(context.Context) error {
				if time.Now().Before(back) {
					return errUnreachable
				}
				return nil
			}
			fakes, sinks = append(fakes, s), append(sinks, listedSink{s})
		}
		life := attached(t, r, sinks...)
		if err := life.WaitSynced(within(t, 2*sinkOpenWait)); err != nil {
			t.Fatalf("the copy waits for sinks that are unreachable: %v", err)
		}
		r.put("c", "")
		time.Sleep(time.Second)
		h := life.Health().Sinks[1]
		if !errors.Is(h.Err, errUnreachable) || h.Failures == 0 || h.ErrSince.IsZero() || h.Name != "two" {
			t.Errorf("health says %+v of a sink that is unreachable", h)
		}
		time.Sleep(2 * time.Minute)
		for i, s := range fakes {
			s.wantHeard(t, "+c3 @3 (after 1 to 3 reconciled)")
			if h := life.Health().Sinks[i]; h.Err != nil || h.Version != "3" {
				t.Errorf("health says %+v of a sink that has come back", h)
			}
		}
		_ = life.stop()
	})
}

func TestSeveralSectionsHaveAPositionEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newRemote("one/a"), newRemote("two/a", "two/b")
		disk, sink := loadedSink{fakeSink: newFakeSink(policy("disk"))}, listedSink{newFakeSink(policy("sink"))}
		run := func(sections ...Section[*entry]) (stop func()) {
			r, err := NewReplicaOf(sections, newPlainStore(), Options[*entry]{Sinks: []Sink[*entry]{disk, sink}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- r.Run(ctx) }()
			settle()
			return func() { cancel(); <-done }
		}
		first, second := Section[*entry]{Name: "one", Source: one, Prefix: "one/"}, Section[*entry]{Name: "two", Source: two, Prefix: "two/"}
		stop := run(first, second)
		one.put("one/a", "")
		two.bookmark()
		settle()
		stop()
		for _, s := range []*fakeSink{disk.fakeSink, sink.fakeSink} {
			if got, want := s.positions.All(), []Position{{Section: "one", Version: "2", Complete: true}, {Section: "two", Version: "3", Complete: true}}; !slices.Equal(got, want) {
				t.Errorf("the %s is at %v, want %v", s.policy.Name, got, want)
			}
			if got, want := s.state(), []Key{"one/a", "two/a", "two/b"}; !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
				t.Errorf("the %s holds %v, want %v", s.policy.Name, got, want)
			}
			s.heard()
		}

		// The second section is gone.
		stop = run(first)
		stop()
		disk.wantHeard(t, "-two/a -two/b one@2")
		sink.wantHeard(t, "-two/a -two/b one@2")
	})
}

func TestReplicaRestartsFromASink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		disk := loadedSink{fakeSink: newFakeSink(policy("disk"))}
		life := attached(t, r, disk)
		settle()
		stopped := time.Now()
		_ = life.stop()
		heard := disk.contact

		r.fail(errUnreachable)
		time.Sleep(time.Hour)
		life = attached(t, r, disk)
		time.Sleep(10 * time.Second)
		h := life.Health()
		if life.Len() != 2 || !h.FromDisk || h.Synced || h.Version != "2" || !h.LastContact.Equal(heard) {
			t.Errorf("it serves %d objects while the source is unreachable, health is %+v; the disk is of %s", life.Len(), h, stopped)
		}
		r.fail(nil)
		r.put("b", "")
		settle()
		h = life.Health()
		if h.FromDisk || !h.Synced || len(h.Lists) != 0 || h.Disk == nil || h.Disk.Name != "disk" {
			t.Errorf("health after the restart: %+v", h)
		}
		disk.heard()
		_ = life.stop()
		disk.wantState(t, r)
	})
}

func TestReplicaOfASinkThatCannotBeLoaded(t *testing.T) {
	for loading, want := range map[error]string{
		errUnreachable: "whole +a1 +b2 @2 (after 1 to 2 reconciled)",
		ErrSinkEmpty:   "whole +a1 +b2 @2",
	} {
		t.Run(loading.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRemote("a", "b")
				disk := loadedSink{fakeSink: newFakeSink(policy("disk")), loading: loading}
				disk.has = map[Key]*entry{"z": {name: "z", version: "1"}}
				disk.positions.Reset(At("1"))
				life := attached(t, r, disk)
				settle()
				disk.wantHeard(t, want)
				_ = life.stop()
			})
		})
	}
}

// A sink that failed to open is not committed to before it has opened.
func TestSinkToLoadFromThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		disk := loadedSink{fakeSink: newFakeSink(policy("disk"))}
		disk.has = r.state()
		disk.positions.Reset(At("2"))
		back := time.Now().Add(30 * time.Second)
		disk.opening = func(context.Context) error {
			if time.Now().Before(back) {
				return errUnreachable
			}
			return nil
		}
		disk.refuse = func(context.Context, Batch[*entry]) error {
			if time.Now().Before(back) {
				t.Error("a commit before the sink was open")
			}
			return nil
		}
		life := attached(t, r, disk)
		time.Sleep(20 * time.Second)
		if h := life.Health(); !h.Synced || !errors.Is(h.Sinks[0].Err, errUnreachable) {
			t.Errorf("the copy of a sink that is unreachable: %+v", h)
		}
		r.put("a", "")
		settle()
		disk.wantHeard(t, "whole +a3 +b2 @3 (after 2 to 3 reconciled)")
		_ = life.stop()
	})
}

// A position says what its content is only if it has a version and lacks nothing.
func TestPositionsThatProveNothing(t *testing.T) {
	for _, c := range []struct {
		at   Position
		want bool
	}{
		{Position{Version: "1", Complete: true}, false},
		{Position{Version: "1"}, true},
		{Position{Complete: true}, true},
	} {
		if got := lacking([]Position{{Version: "1", Complete: true}, c.at}); got != c.want {
			t.Errorf("lacking(%+v) is %v", c.at, got)
		}
	}
}
