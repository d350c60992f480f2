package ctrlcache

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
)

// lookEvery is how often a waiter is polled for pending waits; it does not signal
// them.
const lookEvery = 20 * time.Millisecond

// probeLagging keeps the informers of a handler from lagging while somebody waits, until ctx
// ends.
//
// A namespace in which nothing happens stays at its version until the server sends
// a bookmark, about once a minute, and a caller that waits for all namespaces to reach
// the version of a write in one of them would wait that long. So an informer that lags
// is compared with the server: if the versions of its objects are those of a list
// at a later version, then it shows that version.
//
// Why not a short watch, which would tell only what is new: kube-apiserver 1.36
// sends it no bookmark before it ends, and silence says nothing (tried with 1 to 8
// seconds). [NewClient] knows where the writes were and needs none of this.
func (f *versionReporter) probeLagging(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	ended, cancel := context.WithCancel(ctx)
	cancel() // with an ended context the waiter only says whether it would wait
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		behind, most := f.behind()
		if len(behind) == 0 || f.waiter.WaitForList(ended) == nil {
			continue
		}
		var asking sync.WaitGroup
		for _, i := range behind {
			asking.Go(func() { f.ask(ctx, i, most) })
		}
		asking.Wait()
	}
}

// behind are the informers that lag behind another.
func (f *versionReporter) behind() (informers []int, most tarn.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.reached {
		if most == "" || most.OlderThan(r) {
			most = r
		}
	}
	for i, r := range f.reached {
		if r != "" && r.OlderThan(most) {
			informers = append(informers, i)
		}
	}
	return informers, most
}

// ask finds the true version of informer i. It ignores a failure: the informer
// itself meets it too.
func (f *versionReporter) ask(ctx context.Context, i int, most tarn.Version) {
	p := f.informers[i]
	versions, at, err := p.current(ctx, most)
	if err != nil {
		return
	}
	for {
		now := p.version() // before the objects are looked at
		if p.equals(versions) {
			f.advance(i, at)
			return
		}
		next, ok := after(now)
		if !now.OlderThan(at) || !ok || p.reach(ctx, next) != nil {
			return
		}
	}
}

// equals says whether the informer has exactly these objects, by their versions.
func (p *scopedInformer) equals(versions map[tarn.Key]tarn.Version) bool {
	n := 0
	for key, object := range p.replica.All() {
		m, err := meta.Accessor(object)
		if err != nil || m.GetResourceVersion() == "" || string(versions[key]) != m.GetResourceVersion() {
			return false
		}
		n++
	}
	return n == len(versions)
}

// current lists the versions of a collection's objects, at least as of a version.
func current(ctx context.Context, source *kube.Source[any], least tarn.Version) (map[tarn.Key]tarn.Version, tarn.Version, error) {
	page, err := source.List(ctx, tarn.ListQuery{AtLeast: least})
	if err != nil {
		return nil, "", err
	}
	versions := make(map[tarn.Key]tarn.Version, len(page.Items))
	for _, object := range page.Items {
		m, err := source.Describe(object)
		if err != nil {
			return nil, "", err
		}
		versions[m.Key] = m.Version
	}
	return versions, page.Version, nil
}
