package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tarnproject/tarn"
)

// bucketClient reads the stream of a bucket.
type bucketClient struct {
	js     jetstream.JetStream
	bucket Bucket
	// mirrors is the bucket that this one mirrors, nil if this one is no mirror. A mirror
	// has the subjects of its origin.
	mirrors *Bucket
}

// prefix is what the subjects of all keys begin with.
func (b bucketClient) prefix() string {
	if b.mirrors != nil {
		return b.mirrors.prefix()
	}
	return b.bucket.prefix()
}

// find returns what the server says of the bucket's stream, its own time included. It creates
// the stream if there is none. A stream that exists stays as it is.
func (b bucketClient) find(ctx context.Context) (*jetstream.StreamInfo, error) {
	want := b.bucket.config()
	stream, err := b.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = b.js.CreateStream(ctx, want)
	}
	if err != nil {
		return nil, fmt.Errorf("the stream %s cannot be opened: %w", want.Name, err)
	}
	have := stream.CachedInfo().Config
	if have.Description != want.Description && (!have.AllowAtomicPublish || !have.AllowMsgTTL) {
		return nil, fmt.Errorf("the stream %s was not made by Tarn: it does not allow atomic batches and times to live; name another bucket", want.Name)
	}
	return stream.CachedInfo(), nil
}

// configure changes the settings of the stream that Tarn needs, if they differ. All others,
// such as where the stream is placed, keep their values. Only the feeder may call it: a
// smaller history removes states.
func (b bucketClient) configure(ctx context.Context, have jetstream.StreamConfig) error {
	want, next := b.bucket.config(), have
	next.Subjects = want.Subjects
	next.MaxMsgsPerSubject, next.MaxMsgs, next.MaxBytes, next.MaxMsgSize = want.MaxMsgsPerSubject, want.MaxMsgs, want.MaxBytes, want.MaxMsgSize
	next.MaxAge, next.Duplicates, next.Discard, next.DiscardNewPerSubject = want.MaxAge, want.Duplicates, want.Discard, false
	if b.bucket.Replicas > 0 {
		next.Replicas = want.Replicas
	}
	next.AllowRollup, next.AllowDirect, next.AllowMsgTTL, next.AllowAtomicPublish = true, true, true, true
	if !reflect.DeepEqual(next, have) {
		changed, err := b.js.UpdateStream(ctx, next)
		if err != nil {
			return fmt.Errorf("the stream %s cannot be changed to these settings: %w", want.Name, err)
		}
		have = changed.CachedInfo().Config
	}
	if !have.AllowAtomicPublish || !have.AllowMsgTTL { // an older server leaves out what it does not know
		return fmt.Errorf("the server has version %s and no atomic batches: NATS 2.12 or newer is needed", b.js.Conn().ConnectedServerVersion())
	}
	return nil
}

// mayDrop says that a stream of this configuration may have dropped the only state of an object.
func mayDrop(c jetstream.StreamConfig) bool {
	return c.MaxAge > 0 || c.Discard == jetstream.DiscardOld && (c.MaxBytes > 0 || c.MaxMsgs > 0)
}

// api is the subject of a request to the server, where the connection expects it.
func (b bucketClient) api(request string) string {
	switch options := b.js.Options(); {
	case options.APIPrefix != "":
		return strings.TrimSuffix(options.APIPrefix, ".") + "." + request
	case options.Domain != "":
		return "$JS." + options.Domain + ".API." + request
	}
	return jetstream.DefaultAPIPrefix + request
}

// record is a message of a bucket.
type record struct {
	sequence uint64
	time     time.Time
	header   nats.Header
	data     []byte
}

// last reads the last message of a key; false if there is none. It asks the leader of the
// stream: other members of a cluster may be behind.
func (b bucketClient) last(ctx context.Context, key string) (record, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	request, err := json.Marshal(map[string]string{"last_by_subj": b.prefix() + key})
	if err != nil {
		return record{}, false, err
	}
	raw, err := b.js.Conn().RequestWithContext(ctx, b.api("STREAM.MSG.GET."+b.bucket.stream()), request)
	if err != nil {
		return record{}, false, err
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Sequence uint64    `json:"seq"`
			Time     time.Time `json:"time"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(raw.Data, &answer); err != nil {
		return record{}, false, fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	if answer.Error != nil {
		if answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return record{}, false, nil
		}
		return record{}, false, answer.Error
	}
	m := answer.Message
	r := record{sequence: m.Sequence, time: m.Time, data: m.Data}
	if len(m.Header) > 0 {
		if r.header, err = nats.DecodeHeadersMsg(m.Header); err != nil {
			return record{}, false, err
		}
	}
	return r, true, nil
}

// placed is a checkpoint with the message that it is in. Format is 0 if there is none.
type placed struct {
	Checkpoint
	sequence uint64
	time     time.Time
}

func (b bucketClient) checkpoint(ctx context.Context) (placed, error) {
	r, found, err := b.last(ctx, checkpointKey)
	if err != nil || !found {
		return placed{}, err
	}
	if r.header.Get(headerOperation) != "" { // somebody deleted it
		return placed{sequence: r.sequence, time: r.time}, nil
	}
	c, err := decodeCheckpoint(r.data)
	if err != nil {
		return placed{}, fmt.Errorf("%w; delete the key %s to have the bucket compared with the copy", err, checkpointKey)
	}
	return placed{c, r.sequence, r.time}, nil
}

// walk reads the last message of each key, in the order in which they were written, and then
// what was written since it began, until take returns false. pending is how many messages
// follow.
func (b bucketClient) walk(ctx context.Context, headersOnly bool, take func(key string, m record, pending uint64) bool) error {
	return b.walkBelow(ctx, "", headersOnly, take)
}

// walkBelow walks only the keys that begin with a text, which ends in a dot.
func (b bucketClient) walkBelow(ctx context.Context, beginning string, headersOnly bool, take func(key string, m record, pending uint64) bool) error {
	consumer, err := b.js.OrderedConsumer(ctx, b.bucket.stream(), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{b.prefix() + beginning + ">"},
		DeliverPolicy:  jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: headersOnly, InactiveThreshold: consumerIdle, MaxResetAttempts: 1,
	})
	if err != nil {
		return err
	}
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		key := strings.TrimPrefix(m.Subject(), b.prefix())
		r := record{meta.Sequence.Stream, meta.Timestamp, m.Headers(), m.Data()}
		if !take(key, r, meta.NumPending) {
			return nil
		}
	}
}

// consumerIdle is after how long the server forgets a consumer whose reader is gone.
const consumerIdle = time.Minute

// states reads the state of each key of the bucket, deleted ones included. Nobody may write
// meanwhile.
func (b bucketClient) states(ctx context.Context) (map[tarn.Key]state, error) {
	all := map[tarn.Key]state{}
	err := b.walk(ctx, true, func(key string, r record, pending uint64) bool {
		if name, ok := b.objectKey(key); ok {
			all[name] = stateOf(name, r.header)
		}
		return pending > 0
	})
	return all, err
}

// objectKey is the key of an object; false for a reserved key, and for one that somebody
// else wrote.
func (b bucketClient) objectKey(key string) (tarn.Key, bool) {
	name, err := unescapeKey(key)
	return name, err == nil
}
