package mirror

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// Secrets that are switched off, rotated, deleted or encrypted are in no file of the
// directory any more: not as they are, and not as they come from the server.
func TestSecretsThatAreGone(t *testing.T) {
	const n = 300
	value := func(i, round int) string {
		return fmt.Sprintf("hunter-%d-of-%d-%x", i, round, (i+1)*(round+1)*7919*104729)
	}
	left := func(t *testing.T, dir string, round int) (found int) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		var all []byte
		for _, name := range files {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, raw...)
		}
		for i := range n {
			plain := value(i, round)
			if bytes.Contains(all, []byte(plain)) || bytes.Contains(all, []byte(base64.StdEncoding.EncodeToString([]byte(plain)))) {
				found++
			}
		}
		return found
	}
	for _, how := range []string{"switched off", "rotated", "deleted", "encrypted"} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				put := func(round int) {
					var all []runtime.Object
					for i := range n {
						all = append(all, secret("s"+strconv.Itoa(i), value(i, round), nil))
					}
					if err := r.server.Put(all...); err != nil {
						r.Fatal(err)
					}
				}
				dir := r.directory()
				put(0)
				disk, opts := Disk{Secrets: true}, Options{ShowSecrets: true}
				m, end := r.kept(dir, disk, opts, "secrets", "configmaps")
				r.synced(m)
				if err := m.DB().Flush(); err != nil {
					r.Fatal(err)
				}
				if found := left(r.T, dir, 0); found != n {
					r.Fatalf("%d of %d values are on disk, so nothing is tested", found, n)
				}
				switch how {
				case "switched off":
					end()
					disk, opts = Disk{}, Options{}
					m, end = r.kept(dir, disk, opts, "secrets", "configmaps")
					r.synced(m)
				case "encrypted":
					end()
					// As versions before format 4 left it, and as a kill leaves a log.
					plain, err := os.ReadFile(filepath.Join(dir, "replica.db"))
					if err != nil {
						r.Fatal(err)
					}
					for _, name := range []string{"replica.db.damaged-20260101T000000.000", "replica.db.damaged-20260101T000000.000-wal", "replica.db-wal"} {
						if err := os.WriteFile(filepath.Join(dir, name), plain, 0o600); err != nil {
							r.Fatal(err)
						}
					}
					disk.DB = r.db(dir, bytes.Repeat([]byte{7}, 32))
					opts.Disk = &disk
					m, end = r.start(opts, "secrets", "configmaps")
					r.synced(m)
					end = closing(r, end, disk.DB)
				case "rotated":
					put(1)
				case "deleted":
					for i := range n {
						if err := r.server.Delete(secret("s"+strconv.Itoa(i), "", nil)); err != nil {
							r.Fatal(err)
						}
					}
				}
				time.Sleep(3 * time.Minute)
				if found := left(r.T, dir, 0); found > 0 {
					r.Errorf("%d of %d values are still on disk", found, n)
				}
				end()
				if found := left(r.T, dir, 0); found > 0 {
					r.Errorf("%d of %d values are on disk after the end", found, n)
				}
				if how == "rotated" && left(r.T, dir, 1) != n {
					r.Error("the new values are not on disk")
				}
			})
		})
	}
}
