package ondisk

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/internal/testsize"
	"github.com/tarnproject/tarn/kube"
)

var processSeeds = testsize.Flag("processes.seeds", 6, 2, "how many rows of lives TestManyLives plays")

// TestManyProcesses runs processes one after the other in the same directory. Each
// follows a server that changes, is compacted or restored, and ends normally or in the
// middle of something. Each copy must become equal to the server, and so must its
// handler's.
func TestManyProcesses(t *testing.T) {
	resumed, listed := 0, 0
	for seed := range uint64(processSeeds()) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := runProcesses(t, rand.New(rand.NewPCG(seed, 11)))
				resumed, listed = resumed+r, listed+l
			})
		})
	}
	if resumed == 0 || listed == 0 {
		t.Errorf("%d lives were resumed and %d began with a list: both are to be tested", resumed, listed)
	}
}

func runProcesses(t *testing.T, dice *rand.Rand) (resumed, listed int) {
	server := apiserver.New(apiserver.Options{AnyNamespace: true, BookmarkInterval: 20 * time.Second})
	defer server.Close()
	backup := server.Snapshot()
	churn := func() {
		for range dice.IntN(12) {
			p := pod(fmt.Sprintf("p%d", dice.IntN(8)), fmt.Sprint("node-", dice.IntN(100)))
			if dice.IntN(3) == 0 {
				p.Namespace = "other"
			}
			if dice.IntN(3) == 0 {
				_ = server.Delete(p) // perhaps it is not there
			} else {
				must(t, server.Put(p))
			}
			if dice.IntN(20) == 0 {
				backup = server.Snapshot()
			}
			time.Sleep(time.Duration(dice.IntN(700)) * time.Millisecond)
		}
	}
	var opts []Option
	if dice.IntN(3) == 0 {
		opts = append(opts, Only())
	}
	more := []kube.Option{kube.WatchList(dice.IntN(2) == 0)}
	if dice.IntN(2) == 0 {
		more = append(more, kube.Namespaces("default", "other"))
	}
	w, dir := &tap{}, directory(t)
	churn()
	restored := false
	for process := range 8 {
		w.taken()
		l := startProcess(t, dir, server, w, opts, more...)
		if dice.IntN(2) == 0 && !restored {
			churn()
		}
		restored = false
		must(t, l.WaitSynced(t.Context()))
		switch requests := w.taken(); {
		case process == 0:
		case strings.Contains(requests, "list") || strings.Contains(requests, "stream"):
			listed++
		default:
			resumed++
		}
		if dice.IntN(4) == 0 {
			must(t, server.Restore(backup))
			time.Sleep(10 * time.Minute) // until silence is noticed
		}
		churn()
		time.Sleep(time.Minute)
		l.converged(server)
		if dice.IntN(2) == 0 {
			churn()
		}
		// A crash is what the files hold while nobody has closed them.
		if synctest.Wait(); dice.IntN(2) == 0 {
			dir = copyOf(t, dir)
		}
		l.end()
		churn()
		switch dice.IntN(6) {
		case 0:
			server.Compact()
		case 1:
			// A server that has passed our version again before the probe looks like one
			// that never went back.
			restored = true
			must(t, server.Restore(backup))
		}
	}
	return resumed, listed
}

// copyOf copies the files as they are on disk.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := directory(t)
	must(t, os.Mkdir(to, 0o700))
	for _, name := range []string{"replica.db", "replica.db-wal"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if os.IsNotExist(err) {
			continue
		}
		must(t, err)
		must(t, os.WriteFile(filepath.Join(to, name), raw, 0o600))
	}
	return to
}
