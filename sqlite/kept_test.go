package sqlite

import (
	"bytes"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tarnproject/tarn"
)

// Parts of a state that was never finished are deleted with the next complete one, also
// after a flush in between.
func TestPartsGoAfterAFlush(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	must(t, openStore(t, db).Fill([]tarn.Change[thing]{put("part", 1)}, true))
	must(t, db.Close())

	db = open(t, dir, Options{})
	b := follow(t, openStore(t, db))
	kept, err := b.Restore(t.Context())
	must(t, err)
	if kept.Version() != "" {
		t.Fatalf("a part of a state was restored: %+v", kept)
	}
	must(t, db.Flush())
	must(t, b.Apply([]tarn.Change[thing]{put("a", 1)}, tarn.At("1")))
	must(t, db.Close())
	expect(t, openStore(t, open(t, dir, Options{})), "1", map[tarn.Key]int{"a": 1})
}

// Checksums beside encrypted objects reveal nothing: a reader of the file cannot use
// them to guess a secret.
func TestEncryptedChecksums(t *testing.T) {
	keys, salt := map[byte]*fileKeys{}, newSalt()
	for key := range byte(2) {
		var err error
		keys[key], err = newFileKeys(bytes.Repeat([]byte{key}, 32), salt)
		must(t, err)
	}
	one, two := &packer{owner: "things", keys: keys[0]}, &packer{owner: "things", keys: keys[1]}
	if one.sum("a", []byte("x")) == two.sum("a", []byte("x")) {
		t.Error("the same object has the same checksum under two keys")
	}
	if one.sum("a", []byte("x")) == one.sum("b", []byte("x")) {
		t.Error("the same object has the same checksum under two names")
	}
}

// What was dropped is not in the file any more: it may be what is not to be on disk
// now.
func TestDroppedContentIsGone(t *testing.T) {
	const secret = "hunter2-hunter2"
	for name, drop := range map[string]func(*DB) error{
		"another identity": func(db *DB) error {
			_, err := NewStore(db, Collection{Name: "things", Identity: "another"}, things{})
			return err
		},
		"forgotten": func(db *DB) error { _, err := db.Forget(); return err },
	} {
		dir := directory(t)
		db := open(t, dir, Options{})
		s := openStore(t, db)
		for i := range 300 {
			c := put(secret+strconv.Itoa(i), i)
			must(t, s.Apply([]tarn.Change[thing]{c}, tarn.At("1")))
		}
		must(t, db.Close())
		db = open(t, dir, Options{})
		must(t, drop(db))
		for file, raw := range filesOf(t, dir) {
			if bytes.Contains(raw, []byte(secret)) {
				t.Errorf("%s: it is still in %s", name, filepath.Base(file))
			}
		}
	}
}

// Which cluster the content is of is known to the file that takes the place of a
// damaged one, and not to content of another identity.
func TestLabelOutlivesDamage(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	s := openStore(t, db)
	b := follow(t, s)
	must(t, b.Apply([]tarn.Change[thing]{put("x", 1)}, tarn.At("1")))
	must(t, db.Flush())
	must(t, s.SetLabel("cluster", false))
	s.suspicion.put(errBadRow)
	must(t, b.Apply([]tarn.Change[thing]{put("x", 2)}, tarn.At("2")))
	must(t, db.Flush())
	if len(reports(t, dir)) != 1 || s.Label() != "cluster" || s.Version() != "2" {
		t.Errorf("after a rebuild of version %q the label is %q", s.Version(), s.Label())
	}
	must(t, db.Close())
	db = open(t, dir, Options{})
	if s := openStore(t, db); s.Label() != "cluster" {
		t.Errorf("after a restart the label is %q", s.Label())
	}
	must(t, db.Close())
	s, err := NewStore(open(t, dir, Options{}), Collection{Name: "things", Identity: "another"}, things{})
	must(t, err)
	if s.Label() != "" {
		t.Errorf("the label of another identity is %q", s.Label())
	}
}
