package memory

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory/query"
)

// The several writers of a history, each with keys of its own.
const historyWriters, historyKeys = 3, 4

// seen is the progress of each writer.
type seen [historyWriters]int64

func historyKey(writer, i int) tarn.Key { return tarn.Key(fmt.Sprintf("%d/%d", writer, i)) }

// historyWrite makes a writer's n-th write: all its keys get the number, and one
// more key exists if that is odd. A partial write would show.
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

// historySeen reads the progress of the writers from a content, and returns what is
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
// snapshots. The history is linearizable if and only if
//
//   - no snapshot shows a write that had not begun when the snapshot ended, or
//     lacks one that had ended before it began;
//   - of any two snapshots, one shows everything that the other one shows.
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

// TestQueriesBesideAWriter runs random queries beside a writer. Each answer names
// its version, and is compared with a plain filter over what was written as that
// version.
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
	// written is the content of each version; it is set before anyone can see the
	// version.
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
				asked := someQuery(random)
				q := asked.query
				snap := s.Snapshot()
				ofStore, err := s.Select(q)
				ofSnapshot, err2 := snap.Select(q)
				counted, err3 := snap.Count(q)
				snap.Close()
				if err != nil || err2 != nil || err3 != nil {
					t.Error(err, err2, err3)
					return
				}
				for _, page := range []query.Page[*object]{ofStore, ofSnapshot} {
					n, _ := strconv.Atoi("0" + string(page.Version))
					want, total := asked.answer(*written[n].Load())
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
				if _, total := asked.answer(*written[n].Load()); total != counted {
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
		_ = s.Apply(changes, tarn.At(tarn.Version(strconv.Itoa(n)))) // words does not accept all
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

type object struct {
	item
}

// wordsOf is an index function that does not accept everything.
func wordsOf(o *object) ([]string, error) {
	if o.Size == 5 {
		return nil, errBroken
	}
	return append([]string{o.Node}, o.Tags...), nil
}

func someObject(random *rand.Rand) *object {
	words := []string{"", "a", "b", "ab"}
	word := func() string { return words[random.IntN(len(words))] }
	o := &object{item{Node: word(), Size: random.IntN(6)}}
	for range random.IntN(3) {
		o.Tags = append(o.Tags, word())
	}
	return o
}

// clause is a condition, and its meaning in plain Go.
type clause struct {
	condition query.Condition
	matches   func(*object) bool
}

var clauses = []clause{
	{query.Field("node").Is("a"), func(o *object) bool { return o.Node == "a" }},
	{query.Field("node").In("b", "ab"), func(o *object) bool { return o.Node == "b" || o.Node == "ab" }},
	{query.Field("node").HasPrefix("a"), func(o *object) bool { return strings.HasPrefix(o.Node, "a") }},
	{query.Field("size").AtLeast(3), func(o *object) bool { return o.Size >= 3 }},
	{query.Field("size").Below(2), func(o *object) bool { return o.Size == 1 }}, // a size of 0 counts as no size
	{query.Field("size").Not(4), func(o *object) bool { return o.Size != 4 }},
	{query.Field("tags[*]").Is("b"), func(o *object) bool { return slices.Contains(o.Tags, "b") }},
	{query.Field("tags[*]").Missing(), func(o *object) bool { return len(o.Tags) == 0 }},
	{query.Indexed("words", "a"), func(o *object) bool {
		words, err := wordsOf(o)
		return err == nil && slices.Contains(words, "a")
	}},
}

// randomQuery is a query without a sort, with its clauses.
type randomQuery struct {
	query   query.Query
	clauses []clause
	limit   int
}

func someQuery(random *rand.Rand) (a randomQuery) {
	a.query = query.Where()
	for range random.IntN(3) {
		c := clauses[random.IntN(len(clauses))]
		a.clauses = append(a.clauses, c)
		a.query = a.query.And(c.condition)
	}
	if random.IntN(2) == 0 {
		a.limit = 1 + random.IntN(10)
		a.query = a.query.Limit(a.limit)
	}
	return a
}

// answer is the result of the query in a content, up to its limit, and the number
// of all matches.
func (a randomQuery) answer(content map[tarn.Key]*object) (keys []tarn.Key, total int) {
	for _, key := range slices.Sorted(maps.Keys(content)) {
		if slices.ContainsFunc(a.clauses, func(c clause) bool { return !c.matches(content[key]) }) {
			continue
		}
		if total++; a.limit == 0 || len(keys) < a.limit {
			keys = append(keys, key)
		}
	}
	return keys, total
}
