package sqlite

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// seen is what a view shows of the things.
func seen(t *testing.T, v *Reader) (map[string]string, Holding) {
	t.Helper()
	all := map[string]string{}
	h, err := v.Walk(t.Context(), "things", func(e Entry) error {
		raw, err := e.Bytes()
		all[string(e.Key)] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, h
}

// A view shows what is written beside it, with and without a key, and after the file was
// built again.
func TestViewBesideTheWriter(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "encrypted": []byte(strings.Repeat("k", 32))} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t)
			db := open(t, dir, Options{Key: key})
			store := openStore(t, db)
			if err := store.Apply([]tarn.Change[thing]{put("a", 1), put("b", 2)}, tarn.At("7")); err != nil {
				t.Fatal(err)
			}
			v, err := OpenReader(dir, key)
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			got, h := seen(t, v)
			if want := map[string]string{"a": `{"Name":"a","N":1}`, "b": `{"Name":"b","N":2}`}; !maps.Equal(got, want) {
				t.Errorf("it shows %v, want %v", got, want)
			}
			if h.Version != "7" || h.Objects != 2 || !h.Whole || h.Identity != "test" || h.Schema != "things " {
				t.Errorf("it says %+v", h)
			}
			if err := store.Apply([]tarn.Change[thing]{gone("a")}, tarn.At("8")); err != nil {
				t.Fatal(err)
			}
			if got, h := seen(t, v); len(got) != 1 || h.Version != "8" {
				t.Errorf("after a delete it shows %v at %s", got, h.Version)
			}
			db.mu.Lock()
			err = db.rescue(errors.New("a test"))
			db.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			if h, err := v.State(t.Context(), "things"); err != nil || h.Version != "" {
				t.Errorf("of the new file it says %+v, %v", h, err)
			}
		})
	}
}

func TestViewOfWhatCannotBeRead(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	newer, sealed, foreign := directory(t), directory(t), directory(t)
	db := open(t, newer, Options{})
	if err := db.writer.Exec("PRAGMA user_version=99; UPDATE tarn_format SET value=99 WHERE name='format'"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	open(t, sealed, Options{Key: key}).Close()
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite3.Open(filepath.Join(foreign, fileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Exec("CREATE TABLE x (y)"), conn.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir  string
		key  []byte
		want string
		is   error
	}{
		{dir: t.TempDir(), want: "holds no replica"},
		{dir: newer, want: "format 99", is: ErrNewerFormat},
		{dir: sealed, want: "no key was given", is: ErrKey},
		{dir: sealed, key: []byte(strings.Repeat("x", 32)), want: "another key", is: ErrKey},
		{dir: foreign, want: "something else"},
	} {
		_, err := OpenReader(c.dir, c.key)
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("it says %v, want %q", err, c.want)
		}
	}
	dir := directory(t)
	openStore(t, open(t, dir, Options{}))
	v, err := OpenReader(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := v.State(t.Context(), "nothing"); !errors.Is(err, ErrNoCollection) {
		t.Errorf("of what is not there it says %v", err)
	}
}

// What nobody has opened is removed, with its tables, and the rest stays.
func TestForget(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	store := openStore(t, db)
	if err := store.Apply([]tarn.Change[thing]{put("a", 1)}, tarn.At("7")); err != nil {
		t.Fatal(err)
	}
	if names, err := db.Forget(); err != nil || len(names) > 0 {
		t.Errorf("it removed %v, %v", names, err)
	}
	db.Close()
	db = open(t, dir, Options{})
	if _, err := NewStore(db, Collection{Name: "others"}, things{}); err != nil {
		t.Fatal(err)
	}
	if names, err := db.Forget(); err != nil || len(names) != 1 || names[0] != "things" {
		t.Errorf("it removed %v, %v; want things", names, err)
	}
	r, err := db.Query(t.Context(), "SELECT name FROM sqlite_schema WHERE type='table' AND name LIKE 'tarn_objects%'", Limits{})
	if err != nil || len(r.Rows) != 1 {
		t.Errorf("there are %v, %v; want the table of others alone", r, err)
	}
}

// A query whose time is over before the file is open says that, too.
func TestQueryStoppedWhileOpening(t *testing.T) {
	dir := directory(t)
	open(t, dir, Options{})
	for range 20 {
		if _, err := Query(t.Context(), dir, "SELECT 1", Limits{Time: 1}); err == nil || !strings.Contains(err.Error(), "the statement was stopped after 1ns") {
			t.Fatalf("it says %v", err)
		}
	}
}
