package metrics

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// Options shape a [Collector]. The zero value is a good choice.
type Options struct {
	// FreshWithin is how old the last contact with a source may be for its copy to
	// be fresh; 3 min if 0. API servers send a bookmark about once a minute when
	// nothing else happens.
	FreshWithin time.Duration
}

const defaultFreshWithin = 3 * time.Minute

// Collector exports any number of replicas, pools, decoders and directories, each
// under a name. It is a [prometheus.Collector].
//
//   - Values are read at each scrape: nothing runs in between.
//   - Everything may be added and removed at any time.
//
// Why one collector and not one for each replica: the names would be registered
// twice.
type Collector struct {
	freshWithin time.Duration

	mu       sync.Mutex
	replicas named[Observed]
	fleets   named[Observed]
	bytes    named[func() int]
	decoding named[func() Decoded]
	pools    named[func() PoolStats]
	disks    named[func() DiskStats]
}

// NewCollector returns a collector that shows nothing yet.
func NewCollector(opts Options) *Collector {
	if opts.FreshWithin <= 0 {
		opts.FreshWithin = defaultFreshWithin
	}
	return &Collector{freshWithin: opts.FreshWithin}
}

// Add shows a replica. It fails if there is one of that name.
func (c *Collector) Add(name string, replica Observed) error {
	if v := reflect.ValueOf(replica); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errNil(name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replicas.put("replica", name, replica)
}

// AddClusters shows each section of a replica as a cluster, beside what Add shows of the
// replica.
func (c *Collector) AddClusters(name string, replica Observed) error {
	if v := reflect.ValueOf(replica); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errNil(name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fleets.put("replica", name, replica)
}

// AddBytes shows how much memory an object of a replica takes, by a function that
// must be quick; what is not more than 0 is not shown.
func (c *Collector) AddBytes(name string, perObject func() int) error {
	if perObject == nil {
		return errNil(name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes.put("memory", name, perObject)
}

// AddDecoding shows how much is decoded; see [Decoding].
func (c *Collector) AddDecoding(name string, read func() Decoded) error {
	if read == nil {
		return errNil(name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.decoding.put("source", name, read)
}

// AddPool shows a pool of shared parts; see [Pooling].
func (c *Collector) AddPool(name string, read func() PoolStats) error {
	if read == nil {
		return errNil(name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pools.put("pool", name, read)
}

// AddDisk shows a directory that replicas are kept in; see [Disk].
func (c *Collector) AddDisk(name string, read func() DiskStats) error {
	if read == nil {
		return errNil(name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.disks.put("directory", name, read)
}

func errNil(name string) error { return fmt.Errorf("metrics: the value to show as %q is nil", name) }

// Remove shows no more of whatever has the name.
func (c *Collector) Remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.replicas, name)
	delete(c.fleets, name)
	delete(c.bytes, name)
	delete(c.decoding, name)
	delete(c.pools, name)
	delete(c.disks, name)
}

// Describe names all metrics.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range all {
		out <- m.desc
	}
}

// Collect reads all that is shown.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	fleets := maps.Clone(c.fleets)
	replicas, bytes, decoding, pools, disks := maps.Clone(c.replicas), maps.Clone(c.bytes), maps.Clone(c.decoding), maps.Clone(c.pools), maps.Clone(c.disks)
	c.mu.Unlock()
	s := sender(out)
	for name, replica := range replicas {
		s.replica(name, replica, c.freshWithin)
	}
	for name, replica := range fleets {
		s.clusters(name, replica, c.freshWithin)
	}
	for name, perObject := range bytes {
		if n := perObject(); n > 0 {
			s.send(objectBytes, float64(n), name)
		}
	}
	for name, read := range decoding {
		d := read()
		s.send(decodedObjects, float64(d.Objects), name)
		s.send(decodedBytes, float64(d.Bytes), name)
		s.send(decodeSeconds, d.Time.Seconds(), name)
	}
	for name, read := range pools {
		p := read()
		s.send(poolParts, float64(p.Parts), name)
		s.send(poolBytes, float64(p.Bytes), name)
		s.send(poolHits, float64(p.Hits), name)
		s.send(poolMisses, float64(p.Misses), name)
		s.send(poolStrayWrites, float64(p.StrayWrites), name)
		s.send(poolVerified, float64(p.Verified), name)
	}
	for name, read := range disks {
		d := read()
		s.send(diskBytes, float64(d.Bytes), name)
		s.send(diskLogBytes, float64(d.LogBytes), name)
		s.send(diskFailed, float64(d.Failures), name)
	}
}

// named has values by name.
type named[V any] map[string]V

func (s *named[V]) put(what, name string, v V) error {
	if name == "" {
		return errors.New("metrics: a " + what + " needs a name")
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("metrics: the name %q is not UTF-8, which Prometheus requires", name)
	}
	if _, taken := (*s)[name]; taken {
		return fmt.Errorf("metrics: there is a %s %q already; remove it, or choose another name", what, name)
	}
	if *s == nil {
		*s = named[V]{}
	}
	(*s)[name] = v
	return nil
}
