package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/jetstream"
	"github.com/tarnproject/tarn/jetstream/embedded"
	"github.com/tarnproject/tarn/kube/wire"
)

// window is how many messages of the bare publisher wait for their answers: as many as those
// of the sink.
const window = 1000

// smallCommit is how many changes an atomic batch has beside its checkpoint.
const smallCommit = 999

// measureJetStream compares the sink with a bare asynchronous publisher of messages that are
// encoded already: the same bytes and headers, in a stream with the same settings, on one
// server, which runs in this process. To replace a message costs the server more than to add
// one, so a first state and updates are compared by themselves.
func measureJetStream(ctx context.Context, all []*corev1.Pod) (_ []comparison, err error) {
	s, err := startNATS()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var result []comparison
	for _, form := range []struct {
		name   string
		bucket jetstream.Bucket
	}{{"JetStream, a bucket", jetstream.Bucket{}}, {"JetStream, a stream of all states", jetstream.Bucket{Events: true}}} {
		first := comparison{bare: speed{name: form.name + ": publisher, first state"}, sinks: []speed{{name: form.name + ": sink, first state"}}}
		updates := comparison{bare: speed{name: form.name + ": publisher, updates"}, sinks: []speed{
			{name: form.name + ": sink, updates"},
			{name: form.name + ": sink, updates in atomic batches", unbound: true},
		}}
		for round := range *rounds {
			form.bucket.Name = fmt.Sprintf("fed%d%t", round, form.bucket.Events)
			if err := s.round(ctx, form.bucket, all, &first, &updates); err != nil {
				return nil, err
			}
		}
		result = append(result, first, updates)
	}
	return result, nil
}

// natsServer is a server with a connection.
type natsServer struct {
	dir    string
	server *embedded.Server
	conn   *nats.Conn
	js     natsjs.JetStream
}

func startNATS() (*natsServer, error) {
	dir, err := os.MkdirTemp("", "tarn-engines-")
	if err != nil {
		return nil, err
	}
	s := &natsServer{dir: dir}
	if s.server, err = embedded.Start(embedded.Options{Dir: dir, Listen: "127.0.0.1:0"}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if s.conn, err = nats.Connect(s.server.URL(), nats.MaxReconnects(-1)); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if s.js, err = natsjs.New(s.conn, natsjs.WithPublishAsyncMaxPending(window)); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *natsServer) close() error {
	if s.conn != nil {
		s.conn.Close()
	}
	s.server.Stop()
	return os.RemoveAll(s.dir)
}

// round writes a first state and two updates of each object, by the sink and by the bare
// publisher in turns.
func (s *natsServer) round(ctx context.Context, bucket jetstream.Bucket, all []*corev1.Pod, first, updates *comparison) error {
	sink, err := jetstream.New(s.js, bucket, jetstream.Objects[*corev1.Pod]())
	if err != nil {
		return err
	}
	defer sink.Close()
	if _, err := sink.Open(ctx, nil); err != nil {
		return err
	}
	name := "KV_" + bucket.Name
	if bucket.Events {
		name = bucket.Name
	}
	stream, err := s.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	config := stream.CachedInfo().Config
	config.Name, config.Subjects = "bare_"+bucket.Name, []string{"bare." + bucket.Name + ".>"}
	if _, err := s.js.CreateStream(ctx, config); err != nil {
		return err
	}
	for _, turn := range []struct {
		step
		bare, sink *speed
		commit     int
	}{
		{steps[0], &first.bare, &first.sinks[0], *batch},
		{steps[1], &updates.bare, &updates.sinks[0], *batch},
		{step{tarn.Update, "3"}, &updates.bare, &updates.sinks[1], smallCommit},
	} {
		messages, err := bareMessages(all, "bare."+bucket.Name+".", turn.step)
		if err != nil {
			return err
		}
		batches := changes(all, turn.kind, turn.version, turn.commit)
		if err := turn.bare.measure(len(all), func() error { return s.publish(ctx, messages) }); err != nil {
			return err
		}
		if err := turn.sink.measure(len(all), func() error { return commitAll(ctx, sink, batches) }); err != nil {
			return err
		}
		runtime.KeepAlive(messages) // collections are as frequent in both turns
		runtime.KeepAlive(batches)
	}
	return errors.Join(s.js.DeleteStream(ctx, name), s.js.DeleteStream(ctx, config.Name))
}

// publish sends messages, and waits for the answers to all.
func (s *natsServer) publish(ctx context.Context, messages []*nats.Msg) error {
	var last natsjs.PubAckFuture
	for _, m := range messages {
		var err error
		if last, err = s.js.PublishMsgAsync(m, natsjs.WithStallWait(time.Minute)); err != nil {
			return err
		}
	}
	select {
	case <-s.js.PublishAsyncComplete():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-last.Err():
		return err
	case <-last.Ok():
		return nil
	}
}

// bareMessages are those that the sink writes for objects.
func bareMessages(all []*corev1.Pod, subject string, step step) (messages []*nats.Msg, err error) {
	kind := map[tarn.ChangeType]string{tarn.Add: "add", tarn.Update: "update"}[step.kind]
	for _, p := range all {
		p = at(p, step.version)
		m := &nats.Msg{Subject: subject + p.Namespace + "." + p.Name, Header: nats.Header{
			jetstream.HeaderType: {kind}, jetstream.HeaderVersion: {step.version}, jetstream.HeaderUID: {string(p.UID)},
			jetstream.HeaderDigest: {strconv.FormatInt(time.Now().UnixNano(), 16)},
		}}
		if m.Data, err = wire.AppendJSON(nil, p); err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}
