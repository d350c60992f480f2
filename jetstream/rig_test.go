package jetstream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/jetstream/embedded"
	"github.com/tarnproject/tarn/sinktest"
)

type object = sinktest.Object

// objects is the codec of the suite's objects.
var objects = objectsCodec{JSON(func(o object) (tarn.Meta, error) {
	if o.Key == "" {
		return tarn.Meta{}, fmt.Errorf("an object without a key")
	}
	return tarn.Meta{Key: o.Key, Version: o.Version, UID: o.UID}, nil
})}

type objectsCodec struct{ Codec[object] }

func (objectsCodec) WithVersion(o object, v tarn.Version) (object, error) {
	o.Version = v
	return o, nil
}

// server is a NATS server that ends with a test, and can be stopped and started again.
type server struct {
	t       testing.TB
	options embedded.Options
	*embedded.Server
}

func startServer(t testing.TB, change ...func(*embedded.Options)) *server {
	t.Helper()
	s := &server{t: t, options: embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"}}
	for _, c := range change {
		c(&s.options)
	}
	s.start()
	s.options.Listen = strings.TrimPrefix(s.URL(), "nats://") // the same one again
	t.Cleanup(func() { s.Stop() })
	return s
}

func (s *server) start() {
	s.t.Helper()
	var err error
	if s.Server, err = embedded.Start(s.options); err != nil {
		s.t.Fatal(err)
	}
}

// connect makes a connection, which ends with the test.
func (s *server) connect() jetstream.JetStream {
	s.t.Helper()
	return connect(s.t, s.URL())
}

// connect makes a connection to an address, which ends with the test.
func connect(t testing.TB, address string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(address, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// enlarge lets a bucket that is full have more bytes.
func enlarge(t testing.TB, js jetstream.JetStream, b Bucket) {
	t.Helper()
	stream, err := js.Stream(t.Context(), b.stream())
	if err != nil {
		t.Fatal(err)
	}
	larger := stream.CachedInfo().Config
	larger.MaxBytes = 3 << 20
	if _, err := js.UpdateStream(t.Context(), larger); err != nil {
		t.Fatal(err)
	}
}

func newSink(t testing.TB, js jetstream.JetStream, b Bucket) *Sink[object] {
	t.Helper()
	s, err := New[object](js, b, objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// opened is a sink that has become the feeder.
func opened(t testing.TB, js jetstream.JetStream, b Bucket) *Sink[object] {
	t.Helper()
	s := newSink(t, js, b)
	if _, err := s.Open(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// gapsOf reads the gaps of a bucket, in order.
func gapsOf(b bucketClient) ([]tarn.Gap, error) {
	var all []Gap
	err := b.walk(context.Background(), false, func(key string, r record, pending uint64) bool {
		var g Gap
		if strings.HasPrefix(key, gapPrefix) && json.Unmarshal(r.data, &g) == nil {
			all = append(all, g)
		}
		return pending > 0
	})
	slices.SortFunc(all, func(a, b Gap) int { return int(a.Number) - int(b.Number) })
	var gaps []tarn.Gap
	for _, g := range all {
		gaps = append(gaps, tarn.Gap{Section: g.Section, From: tarn.Version(g.From), To: tarn.Version(g.To), Cause: tarn.GapCause(g.Cause)})
	}
	return gaps, err
}

// to is a batch that leads to a version.
func to(v tarn.Version, changes ...tarn.Change[object]) tarn.Batch[object] {
	return tarn.Batch[object]{Changes: changes, Positions: []tarn.Position{tarn.At(v)}, LastContact: time.Now()}
}

func change(kind tarn.ChangeType, key tarn.Key, v tarn.Version, text string) tarn.Change[object] {
	return tarn.Change[object]{Type: kind, Key: key, Version: v, Object: object{Key: key, Version: v, UID: "uid of " + string(key), Text: text}}
}

// commit gives the sink a batch, which must succeed.
func commit(t testing.TB, s *Sink[object], b tarn.Batch[object]) {
	t.Helper()
	if err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// written counts the messages of objects that were ever written to a bucket.
func written(t testing.TB, s *Sink[object]) uint64 {
	t.Helper()
	c, err := s.checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c.Objects
}
