package sqlite

import (
	"fmt"
	"testing"

	"github.com/tarnproject/tarn"
)

// A walk gives everything once and in order, and can be left after any object, though
// others decode ahead of it.
func TestWalk(t *testing.T) {
	for _, n := range []int{0, 1, firstRows, firstRows + 1, 1000} {
		db := open(t, directory(t), Options{})
		s := openStore(t, db)
		var items []tarn.Item[thing]
		for i := range n {
			name := fmt.Sprintf("thing-%04d", i)
			items = append(items, tarn.Item[thing]{Meta: tarn.Meta{Key: tarn.Key(name)}, Object: thing{Name: name, N: i}})
		}
		must(t, s.Replace(items, tarn.At("1")))
		for _, limit := range []int{1, 2, firstRows, 3*firstRows + 1, 3 * walkRows, n, n + 1} {
			var seen []string
			for key, object := range s.All() {
				if string(key) != object.Name {
					t.Fatalf("%s has %+v", key, object)
				}
				if seen = append(seen, object.Name); len(seen) == limit {
					break
				}
			}
			if want := min(limit, n); limit > 0 && len(seen) != want {
				t.Errorf("of %d, %d are seen, want %d", n, len(seen), want)
			}
			for i, name := range seen {
				if want := fmt.Sprintf("thing-%04d", i); name != want {
					t.Fatalf("number %d is %s, want %s", i, name, want)
				}
			}
		}
		must(t, db.Close())
	}
}

// A walk returns the objects before a damaged one, and then its error.
func TestWalkOfDamage(t *testing.T) {
	db := open(t, directory(t), Options{})
	s := openStore(t, db)
	var items []tarn.Item[thing]
	for i := range 100 {
		name := fmt.Sprintf("thing-%04d", i)
		items = append(items, tarn.Item[thing]{Meta: tarn.Meta{Key: tarn.Key(name)}, Object: thing{Name: name, N: i}})
	}
	must(t, s.Replace(items, tarn.At("1")))
	must(t, db.writer.Exec("UPDATE "+s.c.objectsTable()+" SET body=x'00' WHERE key='thing-0050'"))
	n := 0
	for range s.All() {
		n++
	}
	if n != 50 {
		t.Errorf("%d are seen before the damage, want 50", n)
	}
	if s.suspicion.take() == nil {
		t.Error("the damage is not noted")
	}
}
