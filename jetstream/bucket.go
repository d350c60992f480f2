package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
}

// prepare creates the stream of the bucket, or brings it to the configuration. It returns
// what the server says of it, the server's time included.
func (b bucketClient) prepare(ctx context.Context) (*jetstream.StreamInfo, error) {
	want := b.bucket.config()
	stream, err := b.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = b.js.CreateStream(ctx, want)
	}
	if err != nil {
		return nil, fmt.Errorf("the stream %s cannot be opened: %w", want.Name, err)
	}
	have := stream.CachedInfo().Config
	if !have.AllowAtomicPublish || !have.AllowMsgTTL {
		return nil, fmt.Errorf("the stream %s was not made by Tarn: it does not allow atomic batches and times to live; name another bucket", want.Name)
	}
	if have.MaxMsgsPerSubject != want.MaxMsgsPerSubject || have.MaxBytes != want.MaxBytes || have.MaxAge != want.MaxAge || have.Duplicates != want.Duplicates || have.Replicas != want.Replicas {
		want.Storage = have.Storage // cannot be changed
		if stream, err = b.js.UpdateStream(ctx, want); err != nil {
			return nil, fmt.Errorf("the stream %s cannot be changed to what was asked for: %w", want.Name, err)
		}
	}
	return stream.CachedInfo(), nil
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
	request, err := json.Marshal(map[string]string{"last_by_subj": b.bucket.prefix() + key})
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
	consumer, err := b.js.OrderedConsumer(ctx, b.bucket.stream(), jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: headersOnly, InactiveThreshold: consumerIdle, MaxResetAttempts: 1,
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
		key := strings.TrimPrefix(m.Subject(), b.bucket.prefix())
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
