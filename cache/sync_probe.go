package cache

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
)

// A syncProbe learns what a false [InformerSynced] is waiting for.
//
// The functions that [WaitForCacheSync] is given are bare: nothing about them
// says when to ask again, and a method value hides its receiver. So the question
// is put the other way round. While a waiter calls the function, a probe is open
// for its goroutine; each HasSynced of ours that answers false on that goroutine
// reports the channel that will close, by [noteSynced]. One that answers true reports
// the handlers that have not yet been given the first state, by [noteDelivering].
//
// Why one probe per goroutine, and not one for all callers: a channel that belongs
// to a synctest bubble kills the process when another bubble waits on it, and
// tests in parallel would hand each other such channels. Why not one probe at a
// time under a lock: the function is the user's, and may itself wait for caches.
//
// When no probe is open, and outside start-up none is, noteSynced costs one
// atomic load.
type syncProbe struct {
	outer *syncProbe // of the same goroutine, if the function waits itself
	found []<-chan struct{}
	// delivering are closed when handlers have been given the first state.
	delivering []<-chan struct{}
}

var probes struct {
	open        atomic.Int32
	mu          sync.Mutex
	byGoroutine map[string]*syncProbe
}

// noteSynced informs an open probe of this goroutine that a HasSynced returned
// false and will return true once done is closed.
func noteSynced(done <-chan struct{}) {
	note(func(probe *syncProbe) { probe.found = append(probe.found, done) })
}

// noteDelivering informs an open probe of this goroutine that a HasSynced returned true,
// and that handlers are still being given the first state.
func noteDelivering(handlers func() []<-chan struct{}) {
	if probes.open.Load() == 0 {
		return
	}
	pending := handlers()
	note(func(probe *syncProbe) { probe.delivering = append(probe.delivering, pending...) })
}

// note changes the open probe of this goroutine, if there is one.
func note(change func(*syncProbe)) {
	if probes.open.Load() == 0 {
		return
	}
	self := goroutine()
	probes.mu.Lock()
	defer probes.mu.Unlock()
	if probe := probes.byGoroutine[self]; probe != nil {
		change(probe)
	}
}

// askSynced calls f. If it returns false, askSynced returns some of the channels
// that f waits for, or none if f is not ours; if true, those of handlers that are still
// being given the first state.
func askSynced(f InformerSynced) (synced bool, waitsFor []<-chan struct{}) {
	self, probe := goroutine(), &syncProbe{}

	probes.open.Add(1)
	defer probes.open.Add(-1)
	probes.mu.Lock()
	if probes.byGoroutine == nil {
		probes.byGoroutine = map[string]*syncProbe{}
	}
	probe.outer = probes.byGoroutine[self]
	probes.byGoroutine[self] = probe
	probes.mu.Unlock()

	defer func() {
		probes.mu.Lock()
		defer probes.mu.Unlock()
		if probe.outer != nil {
			probes.byGoroutine[self] = probe.outer
		} else {
			delete(probes.byGoroutine, self)
		}
		waitsFor = probe.found
		if synced {
			waitsFor = probe.delivering
		}
	}()
	return f(), nil
}

// goroutine names the calling goroutine by the head of its stack trace,
// "goroutine 7 [running]:". The runtime offers nothing better, and a changed
// format would only cost the waiter its probe: it would poll.
func goroutine() string {
	var buf [64]byte
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte(" ["))
	return string(head)
}
