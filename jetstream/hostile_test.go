package jetstream

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tarnproject/tarn"
)

// withoutBatches makes a server look like one before 2.12: it leaves out the settings that it
// does not know.
func withoutBatches(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	_, err := nc.Subscribe("OLD.>", func(m *nats.Msg) {
		request := "$JS.API" + strings.TrimPrefix(m.Subject, "OLD")
		if !strings.Contains(request, ".STREAM.CREATE.") && !strings.Contains(request, ".STREAM.UPDATE.") {
			if err := nc.PublishRequest(request, m.Reply, m.Data); err != nil {
				t.Error(err)
			}
			return
		}
		var settings map[string]any
		if err := json.Unmarshal(m.Data, &settings); err != nil {
			t.Error(err)
		}
		delete(settings, "allow_atomic")
		data, err := json.Marshal(settings)
		if err != nil {
			t.Error(err)
		}
		if err := nc.PublishRequest(request, m.Reply, data); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.NewWithAPIPrefix(nc, "OLD")
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// A server that has no atomic batches would write the messages of a commit one by one. It is
// refused, whether the bucket is new or there already.
func TestServerWithoutBatches(t *testing.T) {
	js := withoutBatches(t, startServer(t).connect().Conn())
	for _, how := range []string{"new", "there already"} {
		s := newSink(t, js, Bucket{Name: "b"})
		if _, err := s.Open(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "NATS 2.12 or newer is needed") {
			t.Errorf("a bucket that is %s: %v", how, err)
		}
		s.Close()
	}
}

// silent is a consumer that delivers nothing until it is ended.
type silent struct {
	jetstream.MessagesContext
	ended chan struct{}
}

func (s silent) Next(...jetstream.NextOpt) (jetstream.Msg, error) {
	<-s.ended
	return nil, context.Canceled
}

func (silent) Stop() {}

// A watch ends if nothing is delivered to it of what follows, although its consumer lives. It
// does not end while there is nothing, nor while its reader is slow.
func TestConsumerThatDeliversNothing(t *testing.T) {
	js := startServer(t).connect()
	b := Bucket{Name: "b"}
	s := opened(t, js, b)
	defer s.Close()
	commit(t, s, to("2", change(tarn.Add, "a", "1", "")))
	source := newSource(t, js, b)
	source.checkEvery = 20 * time.Millisecond
	at, err := source.checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	watching, cancel := context.WithCancel(t.Context())
	messages := silent{ended: make(chan struct{})}
	w := &stream[object]{source: source, at: markOf(at), cancel: cancel, messages: messages, received: make(chan received[object]), recent: map[tarn.Key]object{}}
	w.seen.Store(at.sequence)
	w.waiting.Store(true)
	w.running.Go(func() { w.read(watching) })
	w.running.Go(func() { w.keepChecking(watching) })
	defer w.Close()
	defer close(messages.ended)
	quiet, end := context.WithTimeout(t.Context(), 10*source.checkEvery)
	defer end()
	if _, err := w.Next(quiet, make([]tarn.Event[object], 1)); quiet.Err() == nil {
		t.Fatalf("while nothing follows it ends with %v", err)
	}
	commit(t, s, to("3", change(tarn.Update, "a", "3", "")))
	if _, err := w.Next(t.Context(), make([]tarn.Event[object], 1)); tarn.ReasonOf(err) != tarn.ReasonLost || !strings.Contains(err.Error(), "nothing after") {
		t.Errorf("it ends with %v", err)
	}
}

// A slow reader is not mistaken for a consumer that delivers nothing.
func TestSlowReaderIsNotLost(t *testing.T) {
	js := startServer(t).connect()
	b := Bucket{Name: "b", History: 64}
	s := opened(t, js, b)
	defer s.Close()
	commit(t, s, to("1", change(tarn.Add, "a", "1", "")))
	source := newSource(t, js, b)
	source.checkEvery = 5 * time.Millisecond
	page, err := source.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest})
	if err != nil {
		t.Fatal(err)
	}
	w, err := source.Watch(t.Context(), tarn.WatchQuery{From: page.Version})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, v := range []tarn.Version{"2", "3", "4"} {
		commit(t, s, to(v, change(tarn.Update, "a", v, "")))
	}
	checks := time.NewTicker(source.checkEvery)
	defer checks.Stop()
	for range 20 {
		<-checks.C
	}
	for last := tarn.Version("1"); last != "4"; {
		buf := make([]tarn.Event[object], 1)
		if _, err := w.Next(t.Context(), buf); err != nil {
			t.Fatalf("after %s it ends with %v", last, err)
		}
		last = buf[0].Object.Version + buf[0].Version
	}
}

// A mirror of a bucket is read as the bucket itself, in both forms.
func TestMirror(t *testing.T) {
	t.Parallel()
	js := startServer(t).connect()
	for _, b := range []Bucket{{Name: "kept", History: 10}, {Name: "all", Events: true}} {
		origin := newOrigin()
		origin.put("a", "one")
		first := follow(t, origin, newSink(t, js, b))
		mirror := b
		mirror.Name += "-elsewhere"
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: mirror.stream(), Mirror: &jetstream.StreamSource{Name: b.stream()}, AllowDirect: true, MirrorDirect: true}); err != nil {
			t.Fatal(err)
		}
		second := follow(t, newSource(t, js, mirror))
		for _, key := range []tarn.Key{"b", "a", "c"} {
			origin.put(key, "two")
		}
		origin.remove("b")
		eventually(t, "the second copy equals the origin", func() bool {
			return second.Version() == origin.at() && maps.Equal(contents(second), origin.content())
		}, func() string { return first.Health().String() + "\n" + second.Health().String() })
	}
}
