package sqlite

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

func TestContentOutlivesTheProcess(t *testing.T) {
	for name, opts := range map[string]Options{"plain": {}, "encrypted": {Key: bytes.Repeat([]byte{7}, 32)}} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t)
			db := open(t, dir, opts)
			s := openStore(t, db)
			want := map[tarn.Key]int{}
			var changes []tarn.Change[thing]
			for i := range 300 {
				c := put("ns/thing-"+strconv.Itoa(i), i)
				c.Object.Pad = strings.Repeat("all alike ", 40)
				changes, want[c.Key] = append(changes, c), i
			}
			must(t, s.Apply(changes, tarn.At("300")))
			must(t, s.Apply([]tarn.Change[thing]{gone("ns/thing-7"), put("ns/thing-8", 88), gone("ns/none")}, tarn.At("301")))
			delete(want, "ns/thing-7")
			want["ns/thing-8"] = 88
			expect(t, s, "301", want)
			must(t, db.Close())

			s = openStore(t, open(t, dir, opts))
			expect(t, s, "301", want)
			kept, err := s.Restore(t.Context())
			must(t, err)
			if kept.Version() != "301" || time.Since(kept.LastContact) > time.Minute {
				t.Errorf("Restore tells %+v", kept)
			}
		})
	}
}

// Content of another identity is not used.
func TestAnotherIdentityIsBuiltAnew(t *testing.T) {
	dir := directory(t)
	fill := func(c Collection, codec things, opts Options) {
		t.Helper()
		db := open(t, dir, opts)
		s, err := NewStore(db, c, codec)
		must(t, err)
		must(t, s.Apply([]tarn.Change[thing]{put("a", 1)}, tarn.At("1")))
		must(t, db.Close())
	}
	for _, test := range []struct {
		name  string
		c     Collection
		codec things
		opts  Options
		note  string
	}{
		{"server or selector", Collection{Name: "things", Identity: "other"}, things{}, Options{}, `it was of "test", and is now of "other"`},
		{"schema", Collection{Name: "things", Identity: "test"}, things{"2"}, Options{}, "other fields"},
		{"key", Collection{Name: "things", Identity: "test"}, things{}, Options{Key: make([]byte, 32)}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			fill(Collection{Name: "things", Identity: "test"}, things{}, Options{})
			db := open(t, dir, test.opts)
			s, err := NewStore(db, test.c, test.codec)
			must(t, err)
			expect(t, s, "", map[tarn.Key]int{})
			if note := s.Disk().Note; !strings.Contains(note, test.note) {
				t.Errorf("the note is %q, want %q in it", note, test.note)
			}
			must(t, db.Close())
		})
	}
}

func TestBadDirectories(t *testing.T) {
	t.Run("in use", func(t *testing.T) {
		dir := directory(t)
		open(t, dir, Options{})
		_, err := Open(dir, Options{})
		if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "one process at a time") {
			t.Errorf("a second Open says %v", err)
		}
	})
	t.Run("of a newer format", func(t *testing.T) {
		dir := directory(t)
		db := open(t, dir, Options{})
		must(t, db.writer.Exec("PRAGMA user_version=99; UPDATE tarn_format SET value=99 WHERE name='format'"))
		must(t, db.Close())
		before, err := os.ReadFile(filepath.Join(dir, fileName))
		must(t, err)
		if _, err := Open(dir, Options{}); !errors.Is(err, ErrNewerFormat) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Open says %v", err)
		}
		if after, err := os.ReadFile(filepath.Join(dir, fileName)); err != nil || !bytes.Equal(before, after) {
			t.Errorf("a file that is refused was changed: %v", err)
		}
		// It is left unchanged.
		conn, err := sqlite3.Open(filepath.Join(dir, fileName))
		must(t, err)
		defer conn.Close()
		if v, err := number(conn, "PRAGMA user_version"); err != nil || v != 99 {
			t.Errorf("afterwards it has format %d, %v", v, err)
		}
	})
	t.Run("of something else", func(t *testing.T) {
		dir := directory(t)
		must(t, os.Mkdir(dir, 0o700))
		conn, err := sqlite3.Open(filepath.Join(dir, fileName))
		must(t, err)
		must(t, conn.Exec("CREATE TABLE mine (x)"))
		must(t, conn.Close())
		if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "something else") {
			t.Errorf("Open says %v", err)
		}
	})
	t.Run("open to others", func(t *testing.T) {
		dir := directory(t)
		must(t, os.Mkdir(dir, 0o755))
		if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "chmod 700") {
			t.Errorf("Open says %v", err)
		}
	})
	t.Run("a file", func(t *testing.T) {
		dir := directory(t)
		must(t, os.WriteFile(dir, nil, 0o600))
		if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "is not a directory") {
			t.Errorf("Open says %v", err)
		}
	})
	t.Run("read-only", func(t *testing.T) {
		if os.Getuid() == 0 {
			t.Skip("root may write anything")
		}
		dir := directory(t)
		must(t, os.Mkdir(dir, 0o500))
		if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "cannot be written") {
			t.Errorf("Open says %v", err)
		}
	})
}

// An older Tarn that was pointed at a newer file refuses it, but first adds checksums to its
// pages, which other tools do not keep: the file is built again.
func TestPageChecksumsOfAnOlderVersion(t *testing.T) {
	dir, _ := richDirectory(t, 30, nil)
	conn, err := sqlite3.Open(filepath.Join(dir, fileName))
	must(t, err)
	must(t, conn.EnableChecksums("main"))
	must(t, conn.Close())
	db := open(t, dir, Options{})
	if n := reserved(db.writer); n != 0 || len(reports(t, dir)) > 0 {
		t.Errorf("%d bytes of each page are reserved, or it is taken for damaged: %v", n, reports(t, dir))
	}
	expect(t, openRich(t, db), "", map[tarn.Key]int{})
}

func TestFilesArePrivate(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	must(t, openStore(t, db).Apply([]tarn.Change[thing]{put("a", 1)}, tarn.At("1")))
	onlyOurs(t, dir)
	must(t, db.Close())
	if _, err := Query(t.Context(), dir, "SELECT 1", Limits{}); err != nil {
		t.Fatal(err)
	}
	onlyOurs(t, dir) // readers create the files of the log again
}

func onlyOurs(t *testing.T, dir string) {
	t.Helper()
	files := 0
	must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		files++
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %04o, want %04o", name, info.Mode().Perm(), want)
		}
		return nil
	}))
	if files < 5 {
		t.Errorf("only %d files were looked at; where is the log?", files)
	}
}

func TestEncryptedContentIsNotInTheFile(t *testing.T) {
	const secret = "hunter2-is-no-password"
	for _, encrypted := range []bool{false, true} {
		dir, opts := directory(t), Options{}
		if encrypted {
			opts.Key = make([]byte, 32)
		}
		db := open(t, dir, opts)
		s := openStore(t, db)
		var changes []tarn.Change[thing]
		for i := range 500 {
			c := put("t"+strconv.Itoa(i), i)
			c.Object.Pad = strings.Repeat(secret, 20)
			changes = append(changes, c)
		}
		must(t, s.Apply(changes, tarn.At("1")))
		must(t, db.Close())
		raw, err := os.ReadFile(filepath.Join(dir, fileName))
		must(t, err)
		if found := bytes.Contains(raw, []byte(secret)); found == encrypted {
			t.Errorf("encrypted %v, and the secret is in the file: %v", encrypted, found)
		}
	}
}

func TestKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	want := bytes.Repeat([]byte{0xab}, 32)
	for text, good := range map[string]bool{
		string(want): true, strings.Repeat("ab", 32) + "\n": true, "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=": true,
		"": false, "short": false, strings.Repeat("zz", 32): false,
	} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		key, err := KeyFromFile(file)
		if good && !bytes.Equal(key, want) || good != (err == nil) {
			t.Errorf("%q gives %x, %v", text, key, err)
		}
	}
	t.Setenv("TARN_TEST_KEY", strings.Repeat("ab", 32))
	if key, err := KeyFromEnvironment("TARN_TEST_KEY"); err != nil || !bytes.Equal(key, want) {
		t.Errorf("the environment gives %x, %v", key, err)
	}
	if _, err := KeyFromEnvironment("TARN_TEST_NO_KEY"); err == nil || !strings.Contains(err.Error(), "not set") {
		t.Errorf("a variable that is not set says %v", err)
	}
}

// An object that cannot be written is reported, and the version is not to be
// resumed from, until it can or is gone.
func TestAnObjectThatCannotBeWritten(t *testing.T) {
	for name, history := range map[string]History{"without a history": {}, "with a history": keepAll} {
		t.Run(name, func(t *testing.T) {
			s, err := newStore(open(t, directory(t), Options{}), Collection{Name: "things", Identity: "test"}, things{}, history)
			must(t, err)
			bad := put("b", 2)
			bad.Object.Name = "unwritable"
			err = s.Apply([]tarn.Change[thing]{put("a", 1), bad}, tarn.At("2"))
			some, ok := errors.AsType[tarn.ObjectErrors](err)
			if !ok || len(some) != 1 || some[0].Key != "b" {
				t.Fatalf("Apply says %v", err)
			}
			expect(t, s, "2", map[tarn.Key]int{"a": 1})
			whole := func() bool { return s.shown().whole }
			if whole() {
				t.Error("the content is whole without the object")
			}
			must(t, s.Apply(nil, tarn.At("3")))
			if whole() {
				t.Error("a bookmark made the content whole")
			}
			must(t, s.Apply([]tarn.Change[thing]{put("b", 4)}, tarn.At("4")))
			if !whole() {
				t.Error("the content is still not whole")
			}
		})
	}
}

func TestBehindWritesInGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, directory(t), Options{GroupDelay: time.Second, GroupSize: 10})
		s := openStore(t, db)
		b := follow(t, s)
		start := time.Now()
		for i := range 50 {
			must(t, b.Apply([]tarn.Change[thing]{put("a", i)}, tarn.At(tarn.Version(strconv.Itoa(i+1)))))
		}
		expect(t, b, "50", map[tarn.Key]int{"a": 49})
		if h := b.Disk(); h.Pending != 1 || h.Version != "" {
			t.Errorf("before the group is written: %v", h)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		expect(t, s, "50", map[tarn.Key]int{"a": 49})
		if h := b.Disk(); h.Pending != 0 || h.Lag != 0 || h.Version != "50" || h.Err != nil {
			t.Errorf("after the group was written: %v", h)
		}
		var many []tarn.Change[thing]
		for i := range 10 {
			many = append(many, put("b"+strconv.Itoa(i), i))
		}
		must(t, b.Apply(many, tarn.At("60")))
		synctest.Wait()
		if s.Len() != 11 || time.Since(start) > time.Second {
			t.Errorf("a full group was not written at once: %d after %v", s.Len(), time.Since(start))
		}
		must(t, b.Apply([]tarn.Change[thing]{gone("a")}, tarn.At("61")))
		must(t, db.Close())
	})
}

// What waits when the directory is closed is written; what was written is loaded.
func TestBehindCloseAndRestore(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{GroupDelay: time.Hour})
	b := follow(t, openStore(t, db))
	must(t, b.Replace([]tarn.Item[thing]{
		{Meta: tarn.Meta{Key: "a"}, Object: thing{N: 1}}, {Meta: tarn.Meta{Key: "b"}, Object: thing{N: 2}}}, tarn.At("2")))
	must(t, b.Apply([]tarn.Change[thing]{gone("a"), put("c", 3)}, tarn.At("3")))
	must(t, db.Close())

	b = follow(t, openStore(t, open(t, dir, Options{})))
	expect(t, b, "", map[tarn.Key]int{})
	kept, err := b.Restore(context.Background())
	must(t, err)
	if kept.Version() != "3" {
		t.Errorf("Restore tells %+v", kept)
	}
	expect(t, b, "3", map[tarn.Key]int{"b": 2, "c": 3})
}

// What could not be loaded, though it is not damaged, is no part of the state that
// comes instead: the file must not keep what is gone.
func TestUnreadableContentIsReplaced(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	b := follow(t, openStore(t, db))
	must(t, b.Apply([]tarn.Change[thing]{put("a", 1), put("gone", 2)}, tarn.At("2")))
	must(t, db.Close())

	db = open(t, dir, Options{})
	b = follow(t, openStore(t, db))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if kept, err := b.Restore(ended); err == nil || kept.Version() != "" {
		t.Fatalf("Restore tells %+v, %v", kept, err)
	}
	must(t, b.Apply([]tarn.Change[thing]{put("a", 3)}, tarn.At("3")))
	must(t, db.Close())

	b = follow(t, openStore(t, open(t, dir, Options{})))
	_, err := b.Restore(t.Context())
	must(t, err)
	expect(t, b, "3", map[tarn.Key]int{"a": 3})
}

// A large first state is written in parts, and no part is ever treated as a state.
func TestPartsAreNoState(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	s := openStore(t, db)
	must(t, s.write(batch[thing]{changes: []tarn.Change[thing]{put("a", 1)}, part: true}))
	must(t, db.Close())

	db = open(t, dir, Options{})
	b := follow(t, openStore(t, db))
	kept, err := b.Restore(t.Context())
	must(t, err)
	if kept.Version() != "" || b.Len() != 0 {
		t.Errorf("a part was restored: %+v, %d objects", kept, b.Len())
	}
	must(t, b.Apply([]tarn.Change[thing]{put("b", 2)}, tarn.At("2")))
	must(t, db.Close())
	s = openStore(t, open(t, dir, Options{}))
	expect(t, s, "2", map[tarn.Key]int{"b": 2})
}

func TestALargeFirstState(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	b := follow(t, openStore(t, db))
	var changes []tarn.Change[thing]
	want := map[tarn.Key]int{}
	for i := range 2*largeState + 100 {
		c := put("t"+strconv.Itoa(i), i)
		changes, want[c.Key] = append(changes, c), i
	}
	must(t, b.Apply(changes, tarn.At("9")))
	must(t, db.Close())
	b = follow(t, openStore(t, open(t, dir, Options{})))
	if _, err := b.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, b, "9", want)
}
