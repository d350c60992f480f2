package memory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
)

// thing is an object whose index values, and whether its index functions fail, the
// test decides.
type thing struct {
	id     int
	tags   []string
	broken string // "", "error" or "panic"
}

var errBroken = errors.New("broken thing")

func tagsOf(o *thing) ([]string, error) {
	switch o.broken {
	case "error":
		return o.tags, errBroken
	case "panic":
		panic("broken thing")
	}
	return o.tags, nil
}

func firstTag(o *thing) ([]string, error) {
	tags, err := tagsOf(o)
	return tags[:min(len(tags), 1)], err
}

// model is the simplest store: plain maps, and under each index name the values
// that each key was last indexed under, nil where that failed.
type model struct {
	objects map[tarn.Key]*thing
	version tarn.Version
	values  map[string]map[tarn.Key][]string
}

var functions = map[string]func(*thing) ([]string, error){"tags": tagsOf, "first": firstTag, "late": tagsOf}

func (m *model) index(name string, key tarn.Key, o *thing) {
	var values []string
	if o.broken == "" {
		values, _ = functions[name](o)
	}
	m.values[name][key] = slices.Clone(values)
}

func (m *model) put(key tarn.Key, o *thing) {
	m.objects[key] = o
	for name := range m.values {
		m.index(name, key, o)
	}
}

func (m *model) remove(key tarn.Key) {
	delete(m.objects, key)
	for _, values := range m.values {
		delete(values, key)
	}
}

// failures is what a write of these keys must report.
func (m *model) failures(touched map[tarn.Key]bool, names ...string) (bad []string) {
	for key := range touched {
		if o, ok := m.objects[key]; ok && o.broken != "" {
			for _, name := range names {
				bad = append(bad, fmt.Sprint(key, " ", name))
			}
		}
	}
	slices.Sort(bad)
	return bad
}

func reported(t *rapid.T, err error) (bad []string) {
	if err == nil {
		return nil
	}
	objects, ok := errors.AsType[tarn.ObjectErrors](err)
	if !ok {
		t.Fatalf("not about objects: %v", err)
	}
	for _, b := range objects {
		index, ok := errors.AsType[*IndexError](b.Err)
		if !ok || b.Since.IsZero() {
			t.Fatalf("not an index error, or without a time: %+v", b)
		}
		bad = append(bad, fmt.Sprint(b.Key, " ", index.Index))
	}
	slices.Sort(bad)
	return bad
}

func (m *model) check(t *rapid.T, s *Store[*thing]) {
	keys := slices.Sorted(maps.Keys(m.objects))
	equal(t, "All", m.objects, maps.Collect(s.All()))
	equal(t, "Keys", keys, slices.Sorted(slices.Values(s.Keys())))
	equal(t, "List", ids(slices.Collect(maps.Values(m.objects))), ids(s.List()))
	equal(t, "Len", len(keys), s.Len())
	equal(t, "Version", m.version, s.Version())
	equal(t, "names", slices.Sorted(maps.Keys(m.values)), slices.Sorted(maps.Keys(s.IndexFuncs())))
	for name, values := range m.values {
		want := map[string][]tarn.Key{}
		for _, key := range keys {
			for _, value := range slices.Compact(slices.Sorted(slices.Values(values[key]))) {
				want[value] = append(want[value], key)
			}
		}
		have, err := s.IndexValues(name)
		equal(t, "IndexValues", slices.Sorted(maps.Keys(want)), have)
		for value, keys := range want {
			found, err := s.IndexKeys(name, value)
			equal(t, "IndexKeys "+name+" "+value, keys, found)
			objects, err2 := s.ByIndex(name, value)
			var expected []*thing
			for _, key := range keys {
				expected = append(expected, m.objects[key])
			}
			equal(t, "ByIndex "+name+" "+value, ids(expected), ids(objects))
			equal(t, "errors", nil, errors.Join(err, err2))
		}
		equal(t, "error", nil, err)
	}
	if complaint := s.sound(); complaint != "" {
		t.Fatal(complaint)
	}
}

func ids(things []*thing) []int {
	out := []int{}
	for _, o := range things {
		out = append(out, o.id)
	}
	slices.Sort(out)
	return out
}

func equal[V any](t *rapid.T, what string, want, have V) {
	t.Helper()
	if diff := cmp.Diff(want, have, cmp.Comparer(func(a, b *thing) bool { return a == b }), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s (-want +have):\n%s", what, diff)
	}
}

// TestModel writes at random, with objects that fail in every way at any time and
// objects that are changed while they are stored, and compares all reads with the
// model.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := New[*thing]()
		m := &model{objects: map[tarn.Key]*thing{}, values: map[string]map[tarn.Key][]string{}}
		names := []string{"first", "tags"}
		for _, name := range names {
			m.values[name] = map[tarn.Key][]string{}
			if err := store.AddIndexes(map[string]func(*thing) ([]string, error){name: functions[name]}); err != nil {
				t.Fatal(err)
			}
		}
		var (
			aKey     = rapid.Map(rapid.StringMatching("[a-f]"), func(s string) tarn.Key { return tarn.Key(s) })
			aVersion = rapid.Map(rapid.IntRange(0, 99), func(n int) tarn.Version { return tarn.Version(fmt.Sprint(n)) })
			tags     = rapid.SliceOfN(rapid.StringMatching("[x-z]"), 0, 4)
			broken   = rapid.SampledFrom([]string{"", "", "", "error", "panic"})
			lastID   int
			kept     []keptState
		)
		aThing := rapid.Custom(func(t *rapid.T) *thing {
			lastID++
			return &thing{id: lastID, tags: tags.Draw(t, "tags"), broken: broken.Draw(t, "broken")}
		})
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				m.check(t, store)
				for _, k := range kept {
					k.check(t)
				}
			},
			"apply": func(t *rapid.T) {
				m.version = aVersion.Draw(t, "version")
				var changes []tarn.Change[*thing]
				touched := map[tarn.Key]bool{}
				for range rapid.IntRange(0, 5).Draw(t, "changes") {
					c := tarn.Change[*thing]{Type: rapid.SampledFrom([]tarn.ChangeType{tarn.Add, tarn.Update, tarn.Delete}).Draw(t, "type"), Key: aKey.Draw(t, "key")}
					touched[c.Key] = true
					if c.Type == tarn.Delete {
						m.remove(c.Key)
					} else {
						c.Object = aThing.Draw(t, "object")
						m.put(c.Key, c.Object)
					}
					changes = append(changes, c)
				}
				equal(t, "failures", m.failures(touched, names...), reported(t, store.Apply(changes, tarn.At(m.version))))
			},
			"replace": func(t *rapid.T) {
				kept := maps.Clone(m.objects)
				for key := range m.objects {
					m.remove(key)
				}
				m.version = aVersion.Draw(t, "version")
				var items []tarn.Item[*thing]
				touched := map[tarn.Key]bool{}
				for range rapid.IntRange(0, 6).Draw(t, "items") {
					key := aKey.Draw(t, "key")
					object, ok := kept[key]
					if !ok || rapid.Bool().Draw(t, "new") {
						object = aThing.Draw(t, "object")
					}
					m.put(key, object)
					touched[key] = true
					items = append(items, tarn.Item[*thing]{Meta: tarn.Meta{Key: key}, Object: object})
				}
				equal(t, "failures", m.failures(touched, names...), reported(t, store.Replace(items, tarn.At(m.version))))
			},
			"put": func(t *rapid.T) {
				key, object := aKey.Draw(t, "key"), aThing.Draw(t, "object")
				m.put(key, object)
				equal(t, "failures", m.failures(map[tarn.Key]bool{key: true}, names...), reported(t, store.Put(key, object)))
			},
			"put again": func(t *rapid.T) {
				key := aKey.Draw(t, "key")
				object, ok := m.objects[key]
				if !ok {
					t.Skip()
				}
				m.put(key, object)
				equal(t, "failures", m.failures(map[tarn.Key]bool{key: true}, names...), reported(t, store.Put(key, object)))
			},
			"remove": func(t *rapid.T) {
				key := aKey.Draw(t, "key")
				m.remove(key)
				store.Remove(key)
			},
			"version": func(t *rapid.T) {
				m.version = aVersion.Draw(t, "version")
				store.SetVersion(m.version)
			},
			"change behind the store's back": func(t *rapid.T) {
				if object := m.objects[aKey.Draw(t, "key")]; object != nil {
					object.tags, object.broken = tags.Draw(t, "tags"), broken.Draw(t, "broken")
				}
			},
			"add an index": func(t *rapid.T) {
				err := store.AddIndexes(map[string]func(*thing) ([]string, error){"late": tagsOf})
				if slices.Contains(names, "late") {
					equal(t, "conflict", "indexer conflict: map[late:{}]", fmt.Sprint(err))
					return
				}
				names = append(names, "late")
				m.values["late"] = map[tarn.Key][]string{}
				all := map[tarn.Key]bool{}
				for key, object := range m.objects {
					m.index("late", key, object)
					all[key] = true
				}
				equal(t, "failures", m.failures(all, "late"), reported(t, err))
			},
			"index": func(t *rapid.T) {
				probe := &thing{tags: tags.Draw(t, "tags")}
				var want []*thing
				for key, object := range m.objects {
					if slices.ContainsFunc(m.values["tags"][key], func(v string) bool { return slices.Contains(probe.tags, v) }) {
						want = append(want, object)
					}
				}
				have, err := store.Index("tags", probe)
				equal(t, "error", nil, err)
				equal(t, "Index", ids(want), ids(have))
			},
			"snapshot": func(t *rapid.T) {
				if snap, want := store.Snapshot(), maps.Clone(m.objects); rapid.Bool().Draw(t, "keep") {
					kept = append(kept, keptState{snap, m.version, want})
				} else {
					snap.Close()
				}
			},
			"close": func(t *rapid.T) {
				if len(kept) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(kept)-1).Draw(t, "which")
				kept[i].snapshot.Close()
				kept = slices.Delete(kept, i, i+1)
			},
		})
	})
}

// keptState is a snapshot with what it must show, whatever is written later.
type keptState struct {
	snapshot *Snapshot[*thing]
	version  tarn.Version
	objects  map[tarn.Key]*thing
}

func (k keptState) check(t *rapid.T) {
	equal(t, "All of a snapshot", k.objects, maps.Collect(k.snapshot.All()))
	equal(t, "Len of a snapshot", len(k.objects), k.snapshot.Len())
	equal(t, "Version of a snapshot", k.version, k.snapshot.Version())
	for _, key := range []tarn.Key{"a", "b", "c", "d", "e", "f"} {
		have, ok := k.snapshot.Get(key)
		want, there := k.objects[key]
		equal(t, "Get of a snapshot", fmt.Sprint(there, want), fmt.Sprint(ok, have))
	}
}
