package web

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/memory"
)

// orderCache keeps the order of keys from recent queries, so that a page can jump to row
// 50,000 and back without another search or sort.
//
// Why not continue tokens for the page too: they lead only forward, and a
// scrollbar goes anywhere. Why keys and not objects: old states of objects would
// stay in memory, and the page wants the newest anyway.
//
// After the store has changed, an order is made again only so often that this takes a tenth
// of one core. Until then it is behind: rows may be missing or in their old place, never with
// old content.
type orderCache struct {
	mu  sync.Mutex
	all map[orderKey]*keyOrder
	// building bounds how many orders are made at a time.
	building chan struct{}
	now      func() time.Time
}

type orderKey struct{ table, query, sort string }

type keyOrder struct {
	mu      sync.Mutex
	keys    []tarn.Key
	version tarn.Version
	changed <-chan struct{}
	made    time.Time
	cost    time.Duration
	// used and size are guarded by orderCache.mu.
	used time.Time
	size int
}

const (
	// maxOrderedKeys is how many keys all orders together may hold: 32 MB of them.
	maxOrderedKeys = 2_000_000
	// orderOverhead is how many keys an order counts for in addition to its own.
	orderOverhead = 1000
	// ordersAtOnce is how many orders are made at a time.
	ordersAtOnce = 2
	// orderRest is the shortest time that a view serves.
	orderRest = 250 * time.Millisecond
	// orderIdle is how long an unused order is kept.
	orderIdle = 2 * time.Minute
)

func newOrderCache() *orderCache {
	return &orderCache{all: map[orderKey]*keyOrder{}, building: make(chan struct{}, ordersAtOnce), now: time.Now}
}

// order is the result of a view. The keys are read-only.
type order struct {
	keys    []tarn.Key
	version tarn.Version
	behind  bool
}

// get returns the keys that a query finds, in order.
func (v *orderCache) get(ctx context.Context, table *mirror.Table, text string, q search, sort string) (order, error) {
	key := orderKey{table.Resource().Name(), text, sort}
	at := v.entry(key)
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.serves(v.now()) {
		return order{at.keys, at.version, closed(at.changed)}, nil
	}
	select {
	case v.building <- struct{}{}:
	case <-ctx.Done(): // the user has typed more, and a newer request replaces this one
		v.drop(key, at)
		return order{}, ctx.Err()
	}
	start := v.now()
	// The view outlives the request. All views of a table share this one channel.
	_, changed := table.Store().AllWatch(context.Background())
	keys, version, err := find(table.Store(), q, sort)
	<-v.building
	if err != nil {
		v.drop(key, at)
		return order{}, err
	}
	at.keys, at.version, at.changed = keys, version, changed
	at.made = v.now()
	at.cost = at.made.Sub(start)
	v.account(at, len(keys))
	return order{keys, version, closed(changed)}, nil
}

// serves reports whether the view is recent enough.
func (v *keyOrder) serves(now time.Time) bool {
	return v.changed != nil && (!closed(v.changed) || now.Sub(v.made) < max(orderRest, 10*v.cost))
}

func (v *orderCache) entry(key orderKey) *keyOrder {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	for other, at := range v.all {
		if now.Sub(at.used) > orderIdle {
			delete(v.all, other)
		}
	}
	at := v.all[key]
	if at == nil {
		at = &keyOrder{}
		v.all[key] = at
	}
	at.used = now
	return at
}

// drop forgets a view that was never made, which no bound counts. The view is
// locked.
func (v *orderCache) drop(key orderKey, at *keyOrder) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at.changed == nil && v.all[key] == at {
		delete(v.all, key)
	}
}

// account records the size of an order and drops the oldest ones while there is too
// much.
func (v *orderCache) account(at *keyOrder, keys int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at.size = keys + orderOverhead
	total := 0
	for _, other := range v.all {
		total += other.size
	}
	for total > maxOrderedKeys {
		var oldest orderKey
		var found *keyOrder
		for key, other := range v.all {
			if other != at && (found == nil || other.used.Before(found.used)) {
				oldest, found = key, other
			}
		}
		if found == nil {
			return
		}
		total -= found.size
		delete(v.all, oldest)
	}
}

// find searches one state of a store.
func find(store *memory.Store[*unstructured.Unstructured], q search, sort string) ([]tarn.Key, tarn.Version, error) {
	if q.all() && sort == "" {
		version := store.Version()
		return store.Keys(), version, nil
	}
	if sort == "" && len(q.labels)+len(q.fields) == 0 {
		version := store.Version()
		var keys []tarn.Key
		for key, object := range store.All() {
			if q.matches(key, object) {
				keys = append(keys, key)
			}
		}
		return keys, version, nil
	}
	mq := q.filters()
	if sort != "" {
		mq = mq.Sort(sort)
	}
	page, err := store.Select(mq)
	if err != nil {
		return nil, "", err
	}
	if len(q.words) == 0 {
		return page.Keys, page.Version, nil
	}
	keys := page.Keys[:0]
	for key, object := range page.All() {
		if q.matches(key, object) {
			keys = append(keys, key)
		}
	}
	return keys, page.Version, nil
}
