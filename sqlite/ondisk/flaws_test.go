package ondisk

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/sqlite"
)

// An object that could not be decoded is also reported by the next process, which would
// not see it if it only resumed from the version on disk. If it can be decoded by then,
// it is in the copy.
func TestBadObjectsAreKnownAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{AnyNamespace: true})
		defer server.Close()
		must(t, server.Put(pod("a1", "node-1"), pod("b1", "node-1")))
		poisoned := ""
		some := choice{transform: func(o any) (any, error) {
			if name := strings.TrimPrefix(key(o), "default/"); strings.Contains(poisoned, name) {
				return nil, errors.New("poisoned")
			}
			return o, nil
		}}
		w, dir := &tap{}, directory(t)
		process := func(bad, events, wire string) {
			t.Helper()
			w.taken()
			l := startInformer(t, dir, "informers", server, w, some, Transform("poison"))
			l.sync()
			if h := l.health(); h.BadCount != len(strings.Fields(bad)) || h.BadCount == 1 && string(h.Bad[0].Key) != "default/"+bad {
				t.Errorf("bad are %v, want %q", h.Bad, bad)
			}
			if got := l.seenEvents(); got != events {
				t.Errorf("the handler got %q, want %q", got, events)
			}
			if got := w.taken(); !strings.HasPrefix(got, wire) {
				t.Errorf("the wire shows %q, want %q", got, wire)
			}
			// A change of the watch that cannot be decoded.
			if poisoned == "" {
				poisoned = "a1"
				must(t, server.Put(pod("a1", "node-7")))
				synctest.Wait()
			}
			l.end()
		}
		process("", "+a1* +b1*", "uid stream")
		process("a1", "+a1* +b1*", "uid stream") // what was last good of it stays
		poisoned = "none"
		process("", "+a1* +b1* ~a1", "uid stream")
		process("", "+a1* +b1*", "uid probe watch")
	})
}

// An object that an index function fails on is known after a restart too.
func TestIndexFailuresAreKnownAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{AnyNamespace: true})
		defer server.Close()
		must(t, server.Put(pod("a1", "node-1"), pod("b1", "node-1")))
		w, dir := &tap{}, directory(t)
		for process, wire := range []string{"uid stream", "uid probe watch", "uid probe watch"} {
			w.taken()
			db, err := sqlite.Open(dir, sqlite.Options{Logger: quiet})
			must(t, err)
			factory, err := informers.NewSharedInformerFactoryForConfig(w.config(server), 0, informers.WithDisk(Keeper(db)))
			must(t, err)
			pods := factory.Core().V1().Pods().Informer()
			must(t, pods.AddIndexers(cache.Indexers{"odd": func(o any) ([]string, error) {
				if key(o) == "default/a1" {
					return nil, errors.New("odd")
				}
				return []string{"x"}, nil
			}}))
			ctx, cancel := context.WithCancel(t.Context())
			factory.StartWithContext(ctx)
			must(t, factory.WaitForCacheSyncWithContext(ctx).Err)
			synctest.Wait()
			replica, _ := cache.ReplicaOf(pods)
			if h := replica.Health(); h.BadCount != 1 || h.Bad[0].Key != "default/a1" || len(pods.GetStore().List()) != 2 {
				t.Errorf("life %d: Health is %+v", process, h)
			}
			if got := w.taken(); !strings.HasPrefix(got, wire) {
				t.Errorf("life %d: the wire shows %q, want %q", process, got, wire)
			}
			cancel()
			factory.Shutdown()
			must(t, db.Close())
		}
	})
}

// A user with the permission to watch, and without the permission to list, can restart
// from disk, as they can start.
func TestRestartWithWatchPermissionOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{AnyNamespace: true})
		defer server.Close()
		must(t, server.Put(pod("a1", "node-1")))
		w, dir := &tap{refuse: map[string]int{"list": http.StatusForbidden, "probe": http.StatusForbidden}}, directory(t)
		for _, events := range []string{"+a1*", "+a1* +a2*"} {
			l := startInformer(t, dir, "informers", server, w, choice{})
			l.sync()
			l.converged(server)
			if got := l.seenEvents(); got != events {
				t.Errorf("the handler got %q, want %q", got, events)
			}
			l.end()
			must(t, server.Put(pod("a2", "node-1")))
		}
	})
}

// A server or proxy that does not serve namespaces can still be followed: then its
// address identifies it.
func TestServersWithoutNamespaces(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusGone} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apiserver.New(apiserver.Options{AnyNamespace: true})
				defer server.Close()
				must(t, server.Put(pod("a1", "node-1")))
				w, dir := &tap{refuse: map[string]int{"uid": status}}, directory(t)
				for range 2 {
					l := startInformer(t, dir, "informers", server, w, choice{})
					l.sync()
					l.converged(server)
					l.end()
				}
			})
		})
	}
}
