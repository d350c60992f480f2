package jetstream

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tarnproject/tarn"
)

// A Codec turns objects into the values of a bucket and back, and reads their identity.
// Several goroutines may use it at a time.
type Codec[T any] interface {
	// Append appends the object's bytes to buf.
	Append(buf []byte, object T) ([]byte, error)
	// Decode must not keep data.
	Decode(data []byte) (T, error)
	Describe(object T) (tarn.Meta, error)
}

// A Versioner is a [Codec] that can give an object another version. A bucket does not
// keep the last state of a deleted object; a [Source] makes it from the previous state.
type Versioner[T any] interface {
	// WithVersion returns a copy.
	WithVersion(object T, v tarn.Version) (T, error)
}

// A Bucket says where a collection is kept, and for how long.
type Bucket struct {
	// Name has letters, digits, - and _.
	Name string
	// History is how many states of an object the bucket keeps: 1 if it is 0, 64 at most.
	// With 1, states that follow each other faster than commits are left out.
	History int
	// Events asks for a stream instead of a bucket: it has every state of every object, on
	// the subject <name>.<key>, and keeps them for MaxAge, for ever if that is 0.
	Events bool
	MaxAge time.Duration
	// MaxBytes bounds what is kept; 0 means no bound. A full bucket takes no more changes.
	// A full stream of events drops its oldest.
	MaxBytes int64
	// Replicas is how many servers keep the bucket. If it is 0, a new one has one, and one that is
	// there stays as it is. Memory keeps nothing on the server's disk.
	Replicas int
	Memory   bool
	// Tombstones is how long a bucket remembers that a key was deleted, a day if it is 0.
	Tombstones time.Duration
	// Lease is how long after its last message a feeder still counts as alive, 30 seconds
	// if it is 0. The feeder renews it three times as often.
	Lease time.Duration
	// Resource names what is kept, such as gears.example.org. A bucket that was written for another
	// resource is left alone ([ErrOtherResource]): names of two may make the same Name. If it is
	// empty, nothing is checked.
	Resource string
	// Of describes what the copy has, such as which namespaces and fields. A bucket with
	// another description is compared with the copy, and not continued. Source, if it is
	// set, returns what identifies the source, such as the uid of a cluster. What begins with
	// "server " identifies it by its address, and is compared with other addresses only.
	Of     string
	Source func(ctx context.Context) (string, error)
	// Feeder names the process in the messages of others: its host and process if empty.
	Feeder string
}

const (
	defaultTombstones = 24 * time.Hour
	defaultLease      = 30 * time.Second
	shortestLease     = 100 * time.Millisecond
)

var bucketName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// withDefaults returns the bucket with its defaults set.
func (b Bucket) withDefaults() (Bucket, error) {
	if !bucketName.MatchString(b.Name) {
		return b, fmt.Errorf("jetstream: %q cannot be the name of a bucket: use letters, digits, - and _", b.Name)
	}
	if b.History < 0 || b.History > jetstream.KeyValueMaxHistory {
		return b, fmt.Errorf("jetstream: bucket %s: a history of %d: a bucket keeps 1 to %d states of an object; for more, use a stream of events", b.Name, b.History, jetstream.KeyValueMaxHistory)
	}
	if b.Events && b.History > 0 || !b.Events && b.MaxAge != 0 {
		return b, fmt.Errorf("jetstream: %s: History is for buckets and MaxAge for streams of events", b.Name)
	}
	if b.MaxAge < 0 || b.MaxBytes < 0 || b.Replicas < 0 || b.Tombstones < 0 || b.Lease < 0 {
		return b, fmt.Errorf("jetstream: %s: a limit is negative", b.Name)
	}
	if b.Tombstones != 0 && b.Tombstones < time.Second || b.Lease != 0 && b.Lease < shortestLease {
		return b, errors.New("jetstream: tombstones are kept for a second at least, and a lease lasts for 100 ms at least")
	}
	b.History = max(b.History, 1)
	if b.Tombstones == 0 {
		b.Tombstones = defaultTombstones
	}
	if b.Lease == 0 {
		b.Lease = defaultLease
	}
	if b.MaxAge != 0 && b.MaxAge < b.Lease {
		return b, fmt.Errorf("jetstream: %s: states are kept for %s, and the checkpoint must last for a lease, %s", b.Name, b.MaxAge, b.Lease)
	}
	return b, nil
}

// drops says that the server may drop the last state of an object.
func (b Bucket) drops() bool { return b.Events && (b.MaxAge > 0 || b.MaxBytes > 0) }

// stream is the name of the bucket's stream.
func (b Bucket) stream() string {
	if b.Events {
		return b.Name
	}
	return "KV_" + b.Name
}

// prefix is what the subjects of all keys begin with.
func (b Bucket) prefix() string {
	if b.Events {
		return b.Name + "."
	}
	return "$KV." + b.Name + "."
}

// rememberIDs is how long the server keeps the ids of messages in memory. Nothing depends on
// it: a chain never sends a message again.
const rememberIDs = time.Second

// config is how the stream of the bucket is set up: as NATS clients set up buckets, with
// atomic batches.
func (b Bucket) config() jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name: b.stream(), Subjects: []string{b.prefix() + ">"},
		Description:       "Kept by Tarn; see the key _tarn.checkpoint.",
		MaxMsgsPerSubject: int64(b.History), MaxBytes: -1, MaxMsgSize: -1, MaxMsgs: -1, MaxConsumers: -1,
		Replicas: max(b.Replicas, 1), Duplicates: rememberIDs, Discard: jetstream.DiscardNew,
		AllowRollup: true, DenyDelete: true, AllowDirect: true, AllowMsgTTL: true, AllowAtomicPublish: true,
	}
	if b.MaxBytes > 0 {
		c.MaxBytes = b.MaxBytes
	}
	if b.Memory {
		c.Storage = jetstream.MemoryStorage
	}
	if b.Events {
		c.MaxMsgsPerSubject, c.Discard, c.MaxAge = -1, jetstream.DiscardOld, b.MaxAge
		if b.MaxAge > 0 {
			c.Duplicates = min(c.Duplicates, b.MaxAge)
		}
	}
	return c
}

// Headers of the messages of objects. Those that do not apply are left out. Characters that
// headers do not keep are escaped as in a URL.
const (
	// HeaderType is add, update or delete.
	HeaderType = "Tarn-Type"
	// HeaderVersion and HeaderUID are those of the object, HeaderEpoch the one of the source.
	HeaderVersion = "Tarn-Version"
	HeaderUID     = "Tarn-Uid"
	HeaderEpoch   = "Tarn-Epoch"
	// HeaderMissed marks a delete that was not seen but inferred.
	HeaderMissed = "Tarn-Missed"
	// HeaderRewound marks a state that was found after the source went back in time, or by a
	// repair: it may have other content under a version that was there before.
	HeaderRewound = "Tarn-Rewound"
	// HeaderDigest is of the content with its version and uid.
	HeaderDigest = "Tarn-Digest"
)

// Headers of NATS.
const (
	headerOperation  = "KV-Operation"
	headerTTL        = "Nats-TTL"
	headerRollup     = "Nats-Rollup"
	headerBatch      = "Nats-Batch-Id"
	headerBatchSeq   = "Nats-Batch-Sequence"
	headerBatchEnd   = "Nats-Batch-Commit"
	operationDeleted = "DEL"

	// The sequence of the last message of the subject, the id of the message, and the id of
	// the last message of the stream.
	headerExpected = "Nats-Expected-Last-Subject-Sequence"
	headerID       = "Nats-Msg-Id"
	headerAfter    = "Nats-Expected-Last-Msg-Id"
)
