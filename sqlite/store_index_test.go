package sqlite

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/tarnproject/tarn"
)

// An index that does not find every object is found when the collection is loaded: an
// object that it misses would be written twice.
func TestIndexThatMisses(t *testing.T) {
	const indexLeaf = 0x0a
	key := []byte("ns/77")
	for name, damage := range map[string]func(page []byte, at int){
		"another key":           func(page []byte, at int) { page[at+len(key)-1] = '_' },
		"keys out of order":     func(page []byte, at int) { page[at] = 'z' },
		"another row":           func(page []byte, at int) { page[at+len(key)] ^= 1 },
		"a lost entry":          func(page []byte, _ int) { binary.BigEndian.PutUint16(page[3:], binary.BigEndian.Uint16(page[3:])-1) },
		"a key that is no text": func(page []byte, at int) { page[at-2]-- },
	} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t)
			want := fillFile(t, dir, 200)
			path := filepath.Join(dir, fileName)
			raw, err := os.ReadFile(path)
			must(t, err)
			done := 0
			for from := 0; from < len(raw); from += pageSize {
				page := raw[from : from+pageSize]
				if at := bytes.Index(page, key); page[0] == indexLeaf && at > 0 {
					damage(page, at)
					done++
				}
			}
			if done != 1 {
				t.Fatalf("the key is on %d pages of indexes, want one", done)
			}
			must(t, os.WriteFile(path, raw, 0o600))

			db := open(t, dir, Options{})
			s := follow(t, openStore(t, db))
			kept, err := s.Restore(t.Context())
			must(t, err)
			if len(kept.Positions) > 0 || len(reports(t, dir)) != 1 {
				t.Errorf("the damage is not found: %v, reports %v", kept, reports(t, dir))
			}
			var changes []tarn.Change[thing]
			for key, n := range want {
				changes = append(changes, put(string(key), n))
			}
			must(t, s.Apply(changes, tarn.At("300")))
			must(t, db.Flush())
			must(t, db.Close())
			if r, err := Check(t.Context(), dir, nil); err != nil || !r.OK() {
				t.Errorf("what was written afterwards is %v, %v", r, err)
			}
		})
	}
}
