package sqlite

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
)

// secrets are values that must not be on disk any more.
type secrets []string

func newSecrets(random *rand.Rand, n int) (all secrets) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for range n {
		value := make([]byte, 24)
		for i := range value {
			value[i] = letters[random.IntN(len(letters))]
		}
		all = append(all, string(value))
	}
	return all
}

// changes writes secret i under key i, some of them long enough for pages of their
// own.
func (s secrets) changes() (all []tarn.Change[thing]) {
	for i, value := range s {
		c := put("ns/secret-"+strconv.Itoa(i), i)
		c.Object.Pad = strings.Repeat("padding ", i%40*20) + value + base64.StdEncoding.EncodeToString([]byte(value))
		all = append(all, c)
	}
	return all
}

// left counts the secrets that can still be found in the files of a directory: any
// eight consecutive bytes of one, plain, in base64 or in hex. Compression does not
// hide them, because random bytes are stored as they are.
func (s secrets) left(t testing.TB, dir string) (n int, where string) {
	t.Helper()
	pieces := map[[8]byte]int{}
	for i, value := range s {
		for at := 0; at+8 <= len(value); at += 4 {
			pieces[[8]byte([]byte(value[at:at+8]))] = i
		}
		for shift := range 3 {
			text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + value))[4:28]
			for at := 0; at+8 <= len(text); at += 4 {
				pieces[[8]byte([]byte(text[at:at+8]))] = i
			}
		}
		text := hex.EncodeToString([]byte(value))
		for at := 0; at+8 <= len(text); at += 8 {
			pieces[[8]byte([]byte(text[at:at+8]))] = i
		}
	}
	found := map[int]bool{}
	must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(name)
		for at := 0; at+8 <= len(raw); at++ {
			if i, ok := pieces[[8]byte(raw[at:])]; ok && !found[i] {
				found[i] = true
				where = fmt.Sprintf("%s at %d", d.Name(), at)
			}
		}
		return err
	}))
	return len(found), where
}

// Gone means gone: what was rotated, deleted, dropped, encrypted or lost with a
// damaged file is in no file of the directory any more.
func TestGoneMeansGone(t *testing.T) {
	const n = 300
	key := bytes.Repeat([]byte{9}, 32)
	flip := func(t *testing.T, dir string) {
		name := filepath.Join(dir, fileName)
		raw, err := os.ReadFile(name)
		must(t, err)
		for at := 2 * pageSize; at < len(raw); at += 999 {
			raw[at] ^= 0xff
		}
		must(t, os.WriteFile(name, raw, 0o600))
	}
	for name, remove := range map[string]func(t *testing.T, dir string, db *DB, b *followed[thing], new secrets) *DB{
		"rotated": func(t *testing.T, dir string, db *DB, b *followed[thing], new secrets) *DB {
			must(t, b.Apply(new.changes(), tarn.At("2")))
			return db
		},
		"rotated and closed": func(t *testing.T, dir string, db *DB, b *followed[thing], new secrets) *DB {
			must(t, b.Apply(new.changes(), tarn.At("2")))
			must(t, db.Close())
			return open(t, dir, Options{})
		},
		"deleted": func(t *testing.T, dir string, db *DB, b *followed[thing], new secrets) *DB {
			var all []tarn.Change[thing]
			for i := range n {
				all = append(all, gone("ns/secret-"+strconv.Itoa(i)))
			}
			must(t, b.Apply(all, tarn.At("2")))
			return db
		},
		"replaced by nothing": func(t *testing.T, dir string, db *DB, b *followed[thing], new secrets) *DB {
			must(t, b.Replace(nil, tarn.At("2")))
			return db
		},
		"of another identity": func(t *testing.T, dir string, db *DB, b *followed[thing], new secrets) *DB {
			must(t, db.Close())
			db = open(t, dir, Options{})
			_, err := NewStore(db, Collection{Name: "secrets", Identity: "another"}, tabular{})
			must(t, err)
			return db
		},
		"forgotten": func(t *testing.T, dir string, db *DB, b *followed[thing], new secrets) *DB {
			must(t, db.Close())
			db = open(t, dir, Options{})
			_, err := db.Forget()
			must(t, err)
			return db
		},
		"encrypted": func(t *testing.T, dir string, db *DB, b *followed[thing], new secrets) *DB {
			must(t, db.Close())
			db = open(t, dir, Options{Key: key})
			must(t, openStore(t, db).Apply(new.changes(), tarn.At("2")))
			return db
		},
		"damaged, then encrypted": func(t *testing.T, dir string, db *DB, b *followed[thing], new secrets) *DB {
			must(t, db.Close())
			flip(t, dir)
			must(t, open(t, dir, Options{}).Close())
			return open(t, dir, Options{Key: key})
		},
		"damaged": func(t *testing.T, dir string, db *DB, _ *followed[thing], new secrets) *DB {
			must(t, db.Close())
			flip(t, dir)
			db = open(t, dir, Options{})
			b := follow(t, openTabular(t, db, "secrets"))
			if kept, err := b.Restore(t.Context()); err != nil || kept.Version() != "" {
				t.Errorf("what is damaged is restored as %+v, %v", kept, err)
			}
			return db
		},
		"lost by a repair": func(t *testing.T, dir string, db *DB, b *followed[thing], new secrets) *DB {
			must(t, db.Close())
			sql("UPDATE tarn_rows_1 SET n=n+1")(t, nil, db.path())
			done, err := Repair(t.Context(), dir, nil)
			if err != nil || done.Saved["secrets"] != 0 {
				t.Errorf("the repair saved %+v, %v", done, err)
			}
			return open(t, dir, Options{})
		},
		"kept as damaged by an older version": func(t *testing.T, dir string, db *DB, b *followed[thing], new secrets) *DB {
			must(t, db.Close())
			must(t, os.Rename(db.path(), db.path()+".damaged-20260101T000000.000"))
			must(t, os.WriteFile(db.path()+".damaged-20260101T000000.000-wal", []byte("log"), 0o600))
			return open(t, dir, Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(1, 2))
				old, new := newSecrets(random, n), newSecrets(random, n)
				dir := directory(t)
				db := open(t, dir, Options{})
				b := follow(t, openTabular(t, db, "secrets"))
				must(t, b.Apply(old.changes(), tarn.At("1")))
				must(t, db.Flush())
				if found, _ := old.left(t, dir); found != n {
					t.Fatalf("of %d secrets %d are found, so nothing is tested", n, found)
				}
				db = remove(t, dir, db, b, new)
				// The log is emptied after a minute.
				time.Sleep(2 * emptyAfter)
				synctest.Wait()
				if found, where := old.left(t, dir); found > 0 {
					t.Errorf("%d of %d secrets are still there, one in %s", found, n, where)
				}
				must(t, db.Close())
				if found, where := old.left(t, dir); found > 0 {
					t.Errorf("%d of %d secrets are there after the end, one in %s", found, n, where)
				}
			})
		})
	}
}
