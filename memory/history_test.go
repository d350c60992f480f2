package memory

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tarnproject/tarn"
)

// The several writers of a history, each with keys of its own.
const historyWriters, historyKeys = 3, 4

// seen is how far each writer had come.
type seen [historyWriters]int64

func historyKey(writer, i int) tarn.Key { return tarn.Key(fmt.Sprintf("%d/%d", writer, i)) }

// historyWrite makes a writer's n-th write: all its keys get the number, and one
// more key is there if that is odd. A part of a write would show.
func historyWrite(s *Store[int], writer, n int) error {
	if n%3 == 0 {
		return s.Batch(func(w *Writer[int]) {
			for i := range historyKeys {
				w.Put(historyKey(writer, i), n)
			}
			w.Remove(historyKey(writer, historyKeys))
			if n%2 == 1 {
				w.Put(historyKey(writer, historyKeys), n)
			}
		})
	}
	var changes []tarn.Change[int]
	for i := range historyKeys {
		changes = append(changes, tarn.Change[int]{Type: tarn.Update, Key: historyKey(writer, i), Object: n})
	}
	last := tarn.Change[int]{Type: tarn.Delete, Key: historyKey(writer, historyKeys)}
	if n%2 == 1 {
		last.Type, last.Object = tarn.Add, n
	}
	return s.Apply(append(changes, last), tarn.At(""))
}

// historySeen reads from a content how far the writers had come, and says what is
// wrong with it.
func historySeen(content map[tarn.Key]int) (at seen, wrong error) {
	for w := range historyWriters {
		n := content[historyKey(w, 0)]
		for i := range historyKeys {
			if content[historyKey(w, i)] != n {
				return at, fmt.Errorf("a part of a write is seen: %v", content)
			}
		}
		if last, there := content[historyKey(w, historyKeys)]; there != (n%2 == 1) || there && last != n {
			return at, fmt.Errorf("a part of write %d of writer %d is seen: %v", n, w, content)
		}
		at[w] = int64(n)
	}
	return at, nil
}

// TestHistoryOfSeveralWriters has several goroutines write and others take
// snapshots. What they saw can be put in one order with the writes, which is what
// linearizable means, if and only if
//
//   - no sight shows a write that had not begun when it ended, or lacks one that had
//     ended before it began;
//   - of any two sights, one shows all that the other one shows.
func TestHistoryOfSeveralWriters(t *testing.T) {
	const writes, readers = 1500, 3
	s := New[int]()
	if err := s.AddIndex("parity", IndexFunc(func(n int) ([]string, error) { return []string{strconv.Itoa(n % 2)}, nil })); err != nil {
		t.Fatal(err)
	}
	var begun, ended [historyWriters]atomic.Int64
	read := func(counters *[historyWriters]atomic.Int64) (at seen) {
		for w := range at {
			at[w] = counters[w].Load()
		}
		return at
	}
	var writing, reading sync.WaitGroup
	for w := range historyWriters {
		writing.Go(func() {
			for n := 1; n <= writes; n++ {
				begun[w].Store(int64(n))
				if err := historyWrite(s, w, n); err != nil {
					t.Error(err)
				}
				ended[w].Store(int64(n))
			}
		})
	}
	done := make(chan struct{})
	sights := make([][]seen, readers)
	for r := range readers {
		reading.Go(func() {
			type keptSnapshot struct {
				*Snapshot[int]
				content map[tarn.Key]int
			}
			var kept []keptSnapshot
			for {
				select {
				case <-done:
					return
				default:
				}
				least := read(&ended)
				snap := s.Snapshot()
				most := read(&begun)
				content := maps.Collect(snap.All())
				at, err := historySeen(content)
				if err != nil {
					t.Error(err)
				}
				for w := range at {
					if at[w] < least[w] || at[w] > most[w] {
						t.Errorf("write %d of writer %d is seen, when %d to %d were possible", at[w], w, least[w], most[w])
					}
				}
				sights[r] = append(sights[r], at)
				if odd, err := snap.Lookup("parity", "1"); err != nil {
					t.Error(err)
				} else if found := maps.Collect(odd); !maps.Equal(found, only(content, func(n int) bool { return n%2 == 1 })) {
					t.Errorf("the index shows %v of %v", found, content)
				}
				if kept = append(kept, keptSnapshot{snap, content}); len(kept) > 4 {
					if again := maps.Collect(kept[0].All()); !maps.Equal(again, kept[0].content) {
						t.Errorf("a snapshot showed %v, and later %v", kept[0].content, again)
					}
					kept[0].Close()
					kept = kept[1:]
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()

	all := slices.Concat(sights...)
	slices.SortFunc(all, func(a, b seen) int { return slices.Compare(a[:], b[:]) })
	for i := 1; i < len(all); i++ {
		for w := range historyWriters {
			if all[i-1][w] > all[i][w] {
				t.Fatalf("one sight shows %v, another %v: neither was first", all[i-1], all[i])
			}
		}
	}
	if len(all) == 0 {
		t.Error("nobody saw anything")
	}
	if wrong := s.sound(); wrong != "" {
		t.Error(wrong)
	}
}

func only(content map[tarn.Key]int, keep func(int) bool) map[tarn.Key]int {
	some := maps.Clone(content)
	maps.DeleteFunc(some, func(_ tarn.Key, n int) bool { return !keep(n) })
	return some
}

// TestQueriesBesideAWriter asks random queries while somebody writes. Each answer
// names the version that it is of, and is compared with a plain filter over what
// was written as that version.
func TestQueriesBesideAWriter(t *testing.T) {
	const versions, readers = 1200, 3
	s := New[*object]()
	for name, x := range map[string]Index[*object]{
		"node": IndexPath[*object]("node"), "size": IndexPath[*object]("size"), "tags": IndexPath[*object]("tags[*]"),
		"both": IndexPath[*object]("node", "size"), "words": IndexFunc(wordsOf),
	} {
		if err := s.AddIndex(name, x); err != nil {
			t.Fatal(err)
		}
	}
	// written is what each version is; a version is in it before anyone can see it.
	var written [versions + 1]atomic.Pointer[map[tarn.Key]*object]
	written[0].Store(&map[tarn.Key]*object{})
	done := make(chan struct{})
	var reading sync.WaitGroup
	var answers atomic.Int64
	for r := range readers {
		reading.Go(func() {
			random := rand.New(rand.NewPCG(uint64(r), 8))
			for {
				select {
				case <-done:
					return
				default:
				}
				q := someQuery(random)
				snap := s.Snapshot()
				ofStore, err := s.Select(q)
				ofSnapshot, err2 := snap.Select(q)
				counted, err3 := snap.Count(q)
				snap.Close()
				if err != nil || err2 != nil || err3 != nil {
					t.Error(err, err2, err3)
					return
				}
				for _, page := range []Page[*object]{ofStore, ofSnapshot} {
					n, _ := strconv.Atoi("0" + string(page.Version))
					want, total := answer(*written[n].Load(), q)
					if !slices.Equal(page.Keys, want) || (page.Continue != "") != (total > len(want)) {
						t.Errorf("%v at version %d: %v, want %v of %d", q, n, page.Keys, want, total)
						return
					}
					for i, key := range page.Keys {
						if page.Objects[i] != (*written[n].Load())[key] {
							t.Errorf("%v at version %d: %s comes with another object", q, n, key)
						}
					}
				}
				n, _ := strconv.Atoi("0" + string(ofSnapshot.Version))
				if _, total := answer(*written[n].Load(), q); total != counted {
					t.Errorf("%v at version %d: counts %d, want %d", q, n, counted, total)
				}
				answers.Add(1)
			}
		})
	}
	random := rand.New(rand.NewPCG(4, 4))
	for n := 1; n <= versions; n++ {
		now := maps.Clone(*written[n-1].Load())
		var changes []tarn.Change[*object]
		for range 1 + random.IntN(3)*random.IntN(20) {
			c := tarn.Change[*object]{Type: tarn.Update, Key: tarn.Key(fmt.Sprintf("k%02d", random.IntN(60))), Object: someObject(random)}
			if random.IntN(4) == 0 {
				c.Type = tarn.Delete
				delete(now, c.Key)
			} else {
				now[c.Key] = c.Object
			}
			changes = append(changes, c)
		}
		written[n].Store(&now)
		_ = s.Apply(changes, tarn.At(tarn.Version(strconv.Itoa(n)))) // words does not take all
	}
	close(done)
	reading.Wait()
	if answers.Load() == 0 {
		t.Error("nobody asked anything")
	}
	if wrong := s.sound(); wrong != "" {
		t.Error(wrong)
	}
}

func someObject(random *rand.Rand) *object {
	words := []string{"", "a", "b", "ab"}
	word := func() string { return words[random.IntN(len(words))] }
	o := labelled(item{Node: word(), Size: random.IntN(6)}, nil)
	for range random.IntN(3) {
		o.Tags = append(o.Tags, word())
	}
	return o
}

func someQuery(random *rand.Rand) Query {
	conditions := []Condition{
		Field("node").Is("a"), Field("node").In("b", "ab"), Field("node").HasPrefix("a"), Field("size").AtLeast(3), Field("size").Below(2),
		Field("tags[*]").Is("b"), Field("tags[*]").Missing(), Field("size").Not(4), Indexed("words", "a"),
	}
	q := Where()
	for range random.IntN(3) {
		q = q.And(conditions[random.IntN(len(conditions))])
	}
	if random.IntN(2) == 0 {
		q = q.Limit(1 + random.IntN(10))
	}
	return q
}

// answer is what a query without a sort finds in a content, up to its limit, and
// how many there are in all.
func answer(content map[tarn.Key]*object, q Query) (keys []tarn.Key, total int) {
	for _, key := range slices.Sorted(maps.Keys(content)) {
		if slices.ContainsFunc(q.conditions, func(c Condition) bool { return !match(c, content[key]) }) {
			continue
		}
		if total++; q.limit == 0 || len(keys) < q.limit {
			keys = append(keys, key)
		}
	}
	return keys, total
}
