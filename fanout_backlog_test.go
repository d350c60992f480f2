package tarn

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tarnproject/tarn/internal/testsize"
)

// script writes changes as text, so that a table shows what goes in and what
// comes out. An object is a letter, its key, with a number for its state:
//
//	+a1   add            *a1  add, initial
//	~a2   update to a2   =a   sync
//	-a3   delete, final state a3       ?a3  the same, found by a relist
//	|     the first state is complete
//
// What comes out shows the old state too: ~a1>a2, -a1>a3.
type script struct {
	held map[Key]*entry
	made map[string]*entry
}

func newScript(known string) *script {
	s := &script{held: map[Key]*entry{}, made: map[string]*entry{}}
	for _, name := range strings.Fields(known) {
		s.held[Key(name[:1])] = s.object(name)
	}
	return s
}

// object returns the one object of that name.
func (s *script) object(name string) *entry {
	if s.made[name] == nil {
		s.made[name] = &entry{name: name[:1], version: Version(name[1:])}
	}
	return s.made[name]
}

// parse reads one change and takes it to be made.
func (s *script) parse(word string) Change[*entry] {
	name := word[1:]
	c := Change[*entry]{Key: Key(name[:1])}
	c.Old = s.held[c.Key]
	c.Object = c.Old
	if word[0] != '=' {
		c.Object = s.object(name)
	}
	c.Version = c.Object.version
	switch word[0] {
	case '+', '*':
		c.Type, c.Initial = Add, word[0] == '*'
	case '~':
		c.Type = Update
	case '=':
		c.Type = Sync
	case '-', '?':
		c.Type, c.Missed = Delete, word[0] == '?'
	}
	s.held[c.Key] = c.Object
	if c.Type == Delete {
		delete(s.held, c.Key)
	}
	return c
}

// backlogOf makes a backlog that folds beyond n changes.
func backlogOf(n int) *backlog[*entry] {
	return newBacklog[*entry](func() int { return n })
}

// publish adds words to a backlog, each as a batch of its own.
func (s *script) publish(b *backlog[*entry], words string) (published []Change[*entry]) {
	for _, word := range strings.Fields(words) {
		if word == "|" {
			b.mark(time.Now())
			published = append(published, Change[*entry]{Type: marked})
			continue
		}
		c := s.parse(word)
		b.add(time.Now(), []Change[*entry]{c})
		published = append(published, c)
	}
	return published
}

// takeAll empties a backlog, n at a time.
func takeAll(b *backlog[*entry], n int) (all []Change[*entry]) {
	for {
		b.mu.Lock()
		buf := b.pop(make([]Change[*entry], 0, n))
		b.mu.Unlock()
		if len(buf) == 0 {
			return all
		}
		all = append(all, buf...)
		for _, c := range buf {
			if c.Type != marked {
				b.handed()
			}
		}
	}
}

func TestFoldRules(t *testing.T) {
	for _, test := range []struct {
		name, known string
		publish     string
		want        string
	}{
		{"an add and its updates are one add", "", "+a1 ~a2 ~a3", "+a3"},
		{"what came and went was never there", "", "+a1 ~a2 -a3", ""},
		{"what came, went and came again is an add", "", "+a1 -a2 +a3", "+a3"},
		{"updates are one, from what is known", "a0", "~a1 ~a2 ~a3", "~a0>a3"},
		{"an update and a delete are a delete of what is known", "a0", "~a1 -a2", "-a0>a2"},
		{"a delete and an add stay two: it is another object", "a0", "-a1 +a2", "-a0>a1 +a2"},
		{"the object after a delete is the latest", "a0", "-a1 +a2 ~a3 ~a4", "-a0>a1 +a4"},
		{"a second delete takes only the second object", "a0", "-a1 +a2 ~a3 -a4", "-a0>a1"},
		{"however often it is created anew, two are enough", "a0", "-a1 +a2 -a3 +a4 ~a5 -a6 +a7", "-a0>a1 +a7"},
		{"an update, a delete, an add", "a0", "~a1 -a2 +a3", "-a0>a2 +a3"},
		{"a delete that a relist found stays one", "a0", "~a1 ?a1", "?a0>a1"},

		{"initial survives updates", "", "*a1 ~a2", "*a2"},
		{"an initial one that went is not seen", "", "*a1 -a2", ""},
		{"an object created after the initial one went is not initial", "", "*a1 -a2 +a3", "+a3"},

		{"syncs are one", "a0", "=a =a =a", "=a0"},
		{"an update says more than a sync", "a0", "=a ~a1 =a", "~a0>a1"},
		{"a delete says more than a sync", "a0", "=a -a1", "-a0>a1"},
		{"a sync adds nothing to an add", "", "+a1 =a", "+a1"},
		{"a sync adds nothing to an object created anew", "a0", "-a1 +a2 =a", "-a0>a1 +a2"},

		{"a key stands where its oldest change was", "a0 b0", "~a1 ~b1 ~a2", "~a0>a2 ~b0>b1"},
		{"one created anew stands where it was deleted", "a0 b0", "-a1 ~b1 +a2", "-a0>a1 +a2 ~b0>b1"},
		{"one that came and went loses its place", "", "+a1 +b1 -a2 +a3", "+b1 +a3"},
		{"keys do not touch each other", "c0", "+a1 +b1 -b2 -c1", "+a1 -c0>c1"},

		{"the mark stays behind what came before", "", "*a1 *b1 | +c1", "*a1 *b1 | +c1"},
		{"the mark stays although what came before went", "", "*a1 | -a2", "|"},
		{"the mark stays before what came after", "", "| +a1 ~a2", "| +a2"},
		{"what is before the mark keeps its place", "", "*a1 *b1 | ~a2", "*a2 *b1 |"},
		{"what went before the mark comes back after it", "", "*a1 | -a2 +a3", "| +a3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, size := range []int{2, 3, handOver} {
				b := backlogOf(0)
				newScript(test.known).publish(b, test.publish)
				count, _ := b.lag()
				got := takeAll(b, size)
				if diff := cmp.Diff(test.want, show(got)); diff != "" {
					t.Errorf("taken by %d (-want +got):\n%s", size, diff)
				}
				if want := len(strings.Fields(strings.ReplaceAll(test.want, "|", ""))); count != want {
					t.Errorf("the count was %d, want %d", count, want)
				}
				if b.folded || b.count != 0 || b.dead != 0 {
					t.Errorf("emptied, it is folded=%v with %d changes and %d dead places", b.folded, b.count, b.dead)
				}
			}

			b := backlogOf(math.MaxInt)
			published := newScript(test.known).publish(b, test.publish)
			if diff := cmp.Diff(show(published), show(takeAll(b, handOver))); diff != "" {
				t.Errorf("within its bound it is no plain queue (-want +got):\n%s", diff)
			}
		})
	}
}

// The bound decides, and only what waits counts.
func TestFoldingBeginsAndEnds(t *testing.T) {
	s := newScript("a0")
	b := backlogOf(3)
	s.publish(b, "~a1 ~a2 ~a3 |")
	if b.folded {
		t.Fatal("three changes were folded, the bound is three")
	}
	b.mu.Lock()
	first := b.pop(make([]Change[*entry], 0, 2))
	b.mu.Unlock()
	if want := "~a0>a1 ~a1>a2"; show(first) != want {
		t.Fatalf("the first two are %s, want %s", show(first), want)
	}
	s.publish(b, "~a4 ~a5")
	if b.folded {
		t.Fatal("two were taken and two came: three wait, the bound is three")
	}
	s.publish(b, "~a6")
	if !b.folded {
		t.Fatal("four changes wait, the bound is three")
	}
	s.publish(b, "~a7")
	if got, want := show(takeAll(b, handOver)), "~a2>a7 |"; got != want {
		t.Fatalf("folded it gives %s, want %s", got, want)
	}
	s.publish(b, "~a8 ~a9")
	if got, want := show(takeAll(b, handOver)), "~a7>a8 ~a8>a9"; got != want {
		t.Fatalf("empty it should be a queue again; it gives %s, want %s", got, want)
	}
}

// Objects that come and go while a subscriber stalls must leave nothing behind,
// and those that stay must be found among them.
func TestDeadPlacesAreBounded(t *testing.T) {
	b := backlogOf(0)
	const living = 3000
	dying := testsize.Of(1_000_000, 50_000)
	for i := range living {
		b.add(time.Time{}, []Change[*entry]{{Type: Add, Key: Key(fmt.Sprint("living ", i))}})
	}
	longest := 0
	for i := range dying {
		key := Key("dying " + strconv.Itoa(i))
		b.add(time.Time{}, []Change[*entry]{{Type: Add, Key: key}, {Type: Delete, Key: key}})
		longest = max(longest, len(b.line))
	}
	if longest > 2*living+2*1024 {
		t.Errorf("the line was %d long with %d changes to tell", longest, living)
	}
	if c := cap(b.line); c > 8*living {
		t.Errorf("the line has room for %d", c)
	}
	if len(b.byKey) != living || b.count != living {
		t.Errorf("%d keys and %d changes are held, want %d", len(b.byKey), b.count, living)
	}
	for i, c := range takeAll(b, handOver) {
		if want := Key(fmt.Sprint("living ", i)); c.Key != want {
			t.Fatalf("change %d is for %q, want %q", i, c.Key, want)
		}
	}
}

func TestTakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backlogOf(10)
		got := make(chan string)
		go func() { got <- show(b.take(t.Context(), make([]Change[*entry], 0, 2))) }()
		synctest.Wait()
		select {
		case s := <-got:
			t.Fatalf("nothing was there, and take returned %q", s)
		default:
		}
		newScript("").publish(b, "+a1")
		if s := <-got; s != "+a1" {
			t.Errorf("take returned %q", s)
		}
	})
}

func TestTakeEnds(t *testing.T) {
	for name, end := range map[string]func(b *backlog[*entry], cancel func()){
		"with its context": func(_ *backlog[*entry], cancel func()) { cancel() },
		"when it closes":   func(b *backlog[*entry], _ func()) { b.close(); b.close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := backlogOf(10)
				ctx, cancel := cancelable(t)
				got := make(chan []Change[*entry])
				go func() { got <- b.take(ctx, make([]Change[*entry], 0, 2)) }()
				synctest.Wait()
				end(b, cancel)
				if c := <-got; c != nil {
					t.Errorf("a wait ended with %s", show(c))
				}
				newScript("").publish(b, "+a1 |")
				if c := b.take(ctx, make([]Change[*entry], 0, 2)); c != nil {
					t.Errorf("after the end take gives %s", show(c))
				}
			})
		})
	}
}

func TestClosedBacklogHoldsNothing(t *testing.T) {
	for _, bound := range []int{0, 100} {
		b := backlogOf(bound)
		newScript("").publish(b, "*a1 *b1 -b2 |")
		b.close()
		newScript("").publish(b, "+c1 |")
		if n, since := b.lag(); n != 0 || !since.IsZero() {
			t.Errorf("bound %d: closed, it lags by %d since %v", bound, n, since)
		}
		if b.queue != nil || b.line != nil || b.byKey != nil {
			t.Errorf("bound %d: closed, it holds a queue of %d and a line of %d", bound, len(b.queue), len(b.line))
		}
	}
}
