package tarn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// queued is what a queue hands over, as text.
func queued(q *sinkQueue[*entry]) string {
	taken := q.take()
	return showBatch(taken.batch())
}

// state makes changes from text: +a1 ~a2 !a2 -a3.
func state(t *testing.T, text string) (changes []Change[*entry]) {
	types := map[byte]ChangeType{'+': Add, '~': Update, '!': Update, '-': Delete}
	for word := range strings.FieldsSeq(text) {
		e := &entry{name: word[1:2], version: Version(word[2:])}
		c := Change[*entry]{Type: types[word[0]], Key: Key(e.name), Object: e, Old: e, Version: e.version, Rewound: word[0] == '!'}
		if c.Type == 0 {
			t.Fatalf("what is %q?", word)
		}
		changes = append(changes, c)
	}
	return changes
}

func TestSinkQueue(t *testing.T) {
	every := func(changes int64) SinkPolicy[*entry] {
		return SinkPolicy[*entry]{EveryState: true, MaxBytes: changes, SizeOf: func(Change[*entry]) int { return 1 }}.withDefaults()
	}
	for _, c := range []struct {
		name   string
		policy SinkPolicy[*entry]
		// start is where the sink stands; empty for nowhere.
		start Version
		// adds are changes, each with the position after a @.
		adds []string
		want string
	}{
		{"the last state of each object", SinkPolicy[*entry]{}, "1", []string{"+a2 +b3 @3", "~a4 @4", "-b5 @5"}, "~a4 -b @5"},
		{"a delete stays although the add before it was not committed", SinkPolicy[*entry]{}, "1", []string{"+a2 @2", "-a3 @3"}, "-a @3"},
		{"an object that was created again", SinkPolicy[*entry]{}, "1", []string{"-a2 @2", "+a3 @3"}, "+a3 @3"},
		{"only a position", SinkPolicy[*entry]{}, "1", []string{"@2", "@3"}, "@3"},
		{"every state in order", every(4), "1", []string{"+a2 +b3 @3", "~a4 @4", "-b5 @5"}, "+a2 +b3 ~a4 -b @5"},
		{"every state beyond the bound", every(3), "1", []string{"+a2 +b3 @3", "~a4 @4", "-b5 @5"}, "~a4 -b @5 (after 1 to 5 folded)"},
		{"beyond the bound without a state too many", every(2), "1", []string{"+a2 @2", "+b3 @3", "+c4 @4"}, "+a2 +b3 +c4 @4"},
		{"folded before the first commit", every(2), "", []string{"+a1 +b2 @2", "~a3 @3", "~a4 @4"}, "~a4 +b2 @4 (after 2 to 4 folded)"},
		{"a rewound state stays one", SinkPolicy[*entry]{}, "9", []string{"!a2 @2", "~a3 @3"}, "!a3 @3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := sinkQueue[*entry]{policy: c.policy}
			if c.start != "" {
				q.from.Reset(At(c.start))
				q.at.Reset(At(c.start))
			}
			for _, add := range c.adds {
				changes, at, _ := strings.Cut(add, "@")
				q.add(time.Now(), time.Now(), state(t, changes), At(Version(at)))
			}
			if got := queued(&q); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if got := queued(&q); got != "" {
				t.Errorf("it is not empty: %s", got)
			}
		})
	}
}

func TestSinkQueuePutBack(t *testing.T) {
	q := sinkQueue[*entry]{policy: SinkPolicy[*entry]{}}
	q.from.Reset(At("1"))
	q.at.Reset(At("1"))
	q.add(time.Now(), time.Now(), state(t, "+a2 +b3"), At("3"))
	failed := q.take()
	q.gaps = append(q.gaps, Gap{From: "3", To: "5", Cause: GapRead})
	q.add(time.Now(), time.Now(), state(t, "-a4 +c5"), At("5"))
	failed.putBack(q)
	if got, want := queued(&failed), "-a +b3 +c5 @5 (after 3 to 5 read anew)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A sink that is slower than its source learns which range was folded, and afterwards
// gets every state again.
func TestSlowSinkIsToldWhatWasFolded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		sink := newFakeSink(SinkPolicy[*entry]{Name: "sink", EveryState: true, MaxBytes: 3, SizeOf: func(Change[*entry]) int { return 1 }})
		slow := time.Duration(0)
		sink.refuse = func(ctx context.Context, _ Batch[*entry]) error {
			pause(ctx, realClock{}, slow)
			return nil
		}
		life := attached(t, r, sink)
		settle()
		slow = time.Minute
		write := func(n int) {
			for range n {
				time.Sleep(time.Second)
				r.put("a", "")
			}
		}
		write(1)
		synctest.Wait()
		write(5)
		synctest.Wait()
		if h := life.Health().Sinks[0]; h.Pending != 2 || h.PendingBytes != 2 || h.Lag != 5*time.Second || h.Version != "1" {
			t.Errorf("health says %+v", h)
		}
		time.Sleep(5 * time.Minute)
		sink.wantHeard(t, "whole +a1 @1", "~a2 @2", "~a7 @7 (after 2 to 7 folded)")
		write(1)
		synctest.Wait()
		write(3)
		time.Sleep(5 * time.Minute)
		sink.wantHeard(t, "~a8 @8", "~a9 ~a10 ~a11 @11")
		_ = life.stop()
	})
}

func TestGapsAndHealthCanBeRead(t *testing.T) {
	for want, g := range map[string]Gap{
		`one from "1" to "2" (folded)`: {Section: "one", From: "1", To: "2", Cause: GapFolded},
		`from "1" on (folded)`:         {From: "1", Cause: GapFolded},
		`up to "2" (folded)`:           {To: "2", Cause: GapFolded},
		`(folded)`:                     {Cause: GapFolded},
	} {
		if got := fmt.Sprint(g); got != want {
			t.Errorf("a gap is %s, want %s", got, want)
		}
	}
}

// A state that the copy could not take is missing in a sink too. The sink's positions
// say so until the object is good again.
func TestBadObjectsAreGapsOfSinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		sink := newFakeSink(SinkPolicy[*entry]{Name: "sink", EveryState: true})
		life := newCopy(t, r, Options[*entry]{Sinks: []Sink[*entry]{sink}, OnBad: func(context.Context, BadObject) {},
			Transform: func(e *entry) (*entry, error) {
				if e.text == "bad" {
					return nil, errors.New("bad")
				}
				return e, nil
			}}).start()
		settle()
		sink.wantHeard(t, "whole +a1 +b2 @2")
		r.put("a", "bad")
		settle()
		r.put("b", "")
		settle()
		r.put("a", "")
		settle()
		for range 2 {
			r.put("b", "")
			settle()
		}
		// The position is complete with the write after the one that brought the good state.
		sink.wantHeard(t, "@3? (after 2 to 3 bad objects)", "~b4 @4? (after 3 to 4 bad objects)", "~a5 @5? (after 4 to 5 bad objects)", "~b6 @6 (after 5 to 6 bad objects)", "~b7 @7")
		_ = life.stop()
	})
}
