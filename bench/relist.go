package main

import (
	"context"
	"fmt"
	"runtime/debug"

	corev1 "k8s.io/api/core/v1"
	upstream "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn/bench/report"
)

func relist(name string, streaming bool) scenario {
	const pods = 20_000
	how := "a stream of initial events"
	if !streaming {
		how = "a paged list"
	}
	return scenario{
		name: name,
		doc: fmt.Sprintf("The watch of %s pods of about 8 KB of heap expires although none has changed; the informer reads them all again by %s. The wall time begins with that request.",
			report.Thousands(pods), how),
		run: forAll(func(ctx context.Context, m *meter, create newInformer) error {
			return runRelist(ctx, m, create, newSource(largePod, pods, streaming, streamBuffer))
		}),
	}
}

// streamBuffer is how many decoded events wait for the informer, as in
// client-go's own watches of a real server.
const streamBuffer = 100

// tightGC has the collector run whenever the heap has grown by so many percent.
// Under the default of 100 a heap may double by garbage alone before anyone
// looks, which hides whether a relist holds the collection once or twice.
const tightGC = 10

// runRelist relists twice: once as it is, for the times, and once with a tight
// collector, for the memory that is held at the worst moment.
func runRelist(ctx context.Context, m *meter, create newInformer, src *source) error {
	changed := make(chan struct{}, 1)
	handler := upstream.ResourceEventHandlerFuncs{UpdateFunc: func(old, object any) {
		if old.(*corev1.Pod).ResourceVersion != object.(*corev1.Pod).ResourceVersion {
			changed <- struct{}{}
		}
	}}
	informer, stop, err := runInformer(ctx, create, src, handler)
	if err != nil {
		return err
	}
	defer stop()
	if err := src.nextRequest(ctx); err != nil {
		return err
	}
	st, err := src.nextWatch(ctx)
	if err != nil {
		return err
	}

	m.start()
	m.record("steady heap", float64(m.heap), report.Bytes)
	if st, err = relistOnce(ctx, src, st, changed, m.lap); err != nil {
		return err
	}
	m.stop()

	defer debug.SetGCPercent(debug.SetGCPercent(tightGC))
	steady, peak := liveHeap(), watchPeak()
	_, err = relistOnce(ctx, src, st, changed, func() {})
	m.record("peak live heap over start", float64(peak.stop())-float64(steady), report.Bytes)
	if err != nil {
		return err
	}
	if n := len(informer.GetStore().ListKeys()); n != src.pods {
		return fmt.Errorf("the store holds %d pods after the relists, the source %d", n, src.pods)
	}
	return nil
}

// relistOnce ends the watch and waits until the informer has read everything again;
// it calls asked when that begins. It returns the next watch.
func relistOnce(ctx context.Context, src *source, st *stream, changed <-chan struct{}, asked func()) (*stream, error) {
	if err := st.expire(); err != nil {
		return nil, err
	}
	// Both contenders back off before they ask again; that is not their work.
	if err := src.nextRequest(ctx); err != nil {
		return nil, err
	}
	asked()
	st, err := src.nextWatch(ctx)
	if err != nil {
		return nil, err
	}
	// Once a handler sees a change from after the relist, the informer is through
	// with the relist.
	if err := st.send(src.touch()); err != nil {
		return nil, err
	}
	_, err = receive(ctx, changed, "the change after the relist")
	return st, err
}
