package sqlite

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/tarnproject/tarn"
)

// thing is what the tests keep.
type thing struct {
	Name string
	N    int
	Pad  string `json:",omitempty"`
}

// things is their codec. It cannot write what is called "unwritable".
type things struct{ schema string }

func (c things) Append(buf []byte, t thing) ([]byte, error) {
	if t.Name == "unwritable" {
		return nil, errors.New("it is not to be written")
	}
	raw, err := json.Marshal(t)
	return append(buf, raw...), err
}

func (things) Decode(raw []byte) (t thing, err error) { return t, json.Unmarshal(raw, &t) }

func (c things) Schema() string { return "things " + c.schema }

// quiet is for tests in which files break on purpose.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func directory(t testing.TB) string { return filepath.Join(t.TempDir(), "replica") }

func open(t testing.TB, dir string, opts Options) *DB {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = quiet
	}
	db, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func openStore(t testing.TB, db *DB) *Store[thing] {
	t.Helper()
	s, err := NewStore(db, Collection{Name: "things", Identity: "test"}, things{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(name string, n int) tarn.Change[thing] {
	return tarn.Change[thing]{Type: tarn.Update, Key: tarn.Key(name), Object: thing{Name: name, N: n}}
}

func gone(name string) tarn.Change[thing] {
	return tarn.Change[thing]{Type: tarn.Delete, Key: tarn.Key(name)}
}

func content(r tarn.Reader[thing]) map[tarn.Key]int {
	all := map[tarn.Key]int{}
	for key, t := range r.All() {
		all[key] = t.N
	}
	return all
}

func expect(t testing.TB, r tarn.Reader[thing], v tarn.Version, want map[tarn.Key]int) {
	t.Helper()
	if got := content(r); !maps.Equal(got, want) {
		t.Errorf("content is %v, want %v", got, want)
	}
	if got := r.Version(); got != v {
		t.Errorf("version is %q, want %q", got, v)
	}
	if got := r.Len(); got != len(want) {
		t.Errorf("Len is %d, want %d", got, len(want))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// filesOf reads the files of a database by their paths.
func filesOf(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, suffix := range []string{"", "-wal"} {
		name := filepath.Join(dir, fileName+suffix)
		raw, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue
		}
		must(t, err)
		files[name] = raw
	}
	return files
}

// copyOf is what a kill leaves: the files as they are.
func copyOf(t testing.TB, dir string) string {
	t.Helper()
	to := directory(t)
	must(t, os.Mkdir(to, 0o700))
	for name, raw := range filesOf(t, dir) {
		must(t, os.WriteFile(filepath.Join(to, filepath.Base(name)), raw, 0o600))
	}
	return to
}
