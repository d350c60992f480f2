package cache

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

func TestProbeHearsOnlyItsOwnGoroutine(t *testing.T) {
	a, b := newSyncing(), newSyncing()
	synced, waitsFor := askSynced(func() bool {
		var other sync.WaitGroup
		other.Go(func() { b.HasSynced() })
		other.Wait()
		return a.HasSynced()
	})
	if synced || len(waitsFor) != 1 || waitsFor[0] != a.done {
		t.Errorf("synced %v, waits for %d channels", synced, len(waitsFor))
	}
}

func TestProbesNest(t *testing.T) {
	outer, inner := newSyncing(), newSyncing()
	_, waitsFor := askSynced(func() bool {
		if _, waitsFor := askSynced(inner.HasSynced); len(waitsFor) != 1 || waitsFor[0] != inner.done {
			t.Error("the inner probe does not hear its function")
		}
		return outer.HasSynced()
	})
	if len(waitsFor) != 1 || waitsFor[0] != outer.done {
		t.Error("the outer probe does not hear its function after an inner one")
	}
}

func TestProbesAreClosed(t *testing.T) {
	func() {
		defer func() { _ = recover() }()
		askSynced(func() bool { panic("user code") })
	}()
	if n := probes.open.Load(); n != 0 || len(probes.byGoroutine) != 0 {
		t.Errorf("%d probes are open, %d are known", n, len(probes.byGoroutine))
	}
	if synced, waitsFor := askSynced(func() bool { return true }); !synced || len(waitsFor) > 0 {
		t.Errorf("synced %v, waits for %d channels", synced, len(waitsFor))
	}
}

// Waits in different bubbles must not hear of each other's channels: the runtime
// ends the process for waiting on another bubble's.
func TestProbesOfSeveralBubbles(t *testing.T) {
	var bubbles sync.WaitGroup
	for range 4 {
		bubbles.Go(func() {
			for range 50 {
				synctest.Test(t, func(t *testing.T) {
					s, result := newSyncing(), make(chan bool)
					go func() {
						result <- WaitForCacheSync(nil, func() bool {
							runtime.Gosched() // into another bubble's question
							return s.HasSynced()
						})
					}()
					synctest.Wait()
					close(s.done)
					if !<-result {
						t.Error("the wait failed")
					}
				})
			}
		})
	}
	bubbles.Wait()
}

func BenchmarkNoteSyncedWithoutWaiter(b *testing.B) {
	done := make(chan struct{})
	for b.Loop() {
		noteSynced(done)
	}
}
