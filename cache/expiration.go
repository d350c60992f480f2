package cache

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ExpirationCache is a store that shows its objects for as long as a policy allows.
// Expired objects are dropped when a read finds them, so they take memory until
// then; ListKeys does not check and returns their keys as well.
type ExpirationCache struct {
	keyFunc KeyFunc
	clock   clock.Clock
	policy  ExpirationPolicy

	// mu makes one step of judging an entry and dropping it: without it an entry
	// added in between would be dropped for the age of the one before.
	mu      sync.Mutex
	entries ThreadSafeStore // of *TimestampedEntry
}

var _ Store = &ExpirationCache{}

// TTLPolicy expires what is older than TTL; with a TTL of zero or less, nothing.
type TTLPolicy struct {
	TTL   time.Duration
	Clock clock.Clock
}

// IsExpired implements [ExpirationPolicy].
func (p *TTLPolicy) IsExpired(entry *TimestampedEntry) bool {
	return p.TTL > 0 && p.Clock.Since(entry.Timestamp) > p.TTL
}

// NewTTLStore gives a store whose objects expire ttl after they were last
// written.
func NewTTLStore(keyFunc KeyFunc, ttl time.Duration) Store {
	return NewExpirationStore(keyFunc, &TTLPolicy{TTL: ttl, Clock: clock.RealClock{}})
}

// NewExpirationStore gives a store whose objects expire when the policy says so.
func NewExpirationStore(keyFunc KeyFunc, expirationPolicy ExpirationPolicy) Store {
	return newExpirationCache(keyFunc, expirationPolicy, clock.RealClock{}, NewThreadSafeStore(nil, nil))
}

// NewFakeExpirationStore is [NewExpirationStore] for tests: it runs by a given
// clock and sends each key that expires to deletedKeys.
func NewFakeExpirationStore(keyFunc KeyFunc, deletedKeys chan<- string, expirationPolicy ExpirationPolicy, cacheClock clock.Clock) Store {
	entries := announcingStore{ThreadSafeStore: NewThreadSafeStore(nil, nil), deleted: deletedKeys}
	return newExpirationCache(keyFunc, expirationPolicy, cacheClock, entries)
}

func newExpirationCache(keyFunc KeyFunc, policy ExpirationPolicy, clock clock.Clock, entries ThreadSafeStore) *ExpirationCache {
	return &ExpirationCache{keyFunc: keyFunc, clock: clock, policy: policy, entries: entries}
}

// announcingStore reports keys that are dropped because they expired.
type announcingStore struct {
	ThreadSafeStore
	deleted chan<- string
}

func (s announcingStore) Delete(key string) {
	s.ThreadSafeStore.Delete(key)
	if s.deleted != nil {
		s.deleted <- key
	}
}

// Get gives the object that is stored under obj's key, unless it has expired.
func (c *ExpirationCache) Get(obj any) (any, bool, error) {
	key, err := c.key(obj)
	if err != nil {
		return nil, false, err
	}
	return c.GetByKey(key)
}

// GetByKey gives the object that is stored under a key, unless it has expired.
func (c *ExpirationCache) GetByKey(key string) (any, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored, exists := c.entries.Get(key)
	if !exists {
		return nil, false, nil
	}
	entry := stored.(*TimestampedEntry)
	if c.policy.IsExpired(entry) {
		c.entries.Delete(key)
		return nil, false, nil
	}
	return entry.Obj, true, nil
}

// List gives every object that has not expired.
func (c *ExpirationCache) List() []any {
	keys := c.entries.ListKeys()
	objects := make([]any, 0, len(keys))
	for _, key := range keys {
		if obj, exists, _ := c.GetByKey(key); exists {
			objects = append(objects, obj)
		}
	}
	return objects
}

// ListKeys gives every key, those of expired objects included.
func (c *ExpirationCache) ListKeys() []string { return c.entries.ListKeys() }

// Add stores an object, as of now.
func (c *ExpirationCache) Add(obj any) error {
	key, err := c.key(obj)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Add(key, &TimestampedEntry{Obj: obj, Timestamp: c.clock.Now()})
	return nil
}

// Update is Add.
func (c *ExpirationCache) Update(obj any) error { return c.Add(obj) }

// Delete removes the object that is stored under obj's key. obj, the final state,
// brings its resource version in.
func (c *ExpirationCache) Delete(obj any) error {
	key, err := c.key(obj)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.DeleteWithObject(key, obj)
	return nil
}

// Replace stores exactly these objects, as of now. It stores none if one has no
// key.
func (c *ExpirationCache) Replace(list []any, resourceVersion string) error {
	entries, now := make(map[string]any, len(list)), c.clock.Now()
	for _, obj := range list {
		key, err := c.key(obj)
		if err != nil {
			return err
		}
		entries[key] = &TimestampedEntry{Obj: obj, Timestamp: now}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Replace(entries, resourceVersion)
	return nil
}

// Resync does nothing.
func (c *ExpirationCache) Resync() error { return nil }

// Bookmark brings the store to a resource version without a change.
func (c *ExpirationCache) Bookmark(rv string) { c.entries.Bookmark(rv) }

// LastStoreSyncResourceVersion gives the resource version that the store has come
// to.
func (c *ExpirationCache) LastStoreSyncResourceVersion() string {
	return c.entries.LastStoreSyncResourceVersion()
}

func (c *ExpirationCache) key(obj any) (string, error) {
	key, err := c.keyFunc(obj)
	if err != nil {
		return "", KeyError{Obj: obj, Err: err}
	}
	return key, nil
}
