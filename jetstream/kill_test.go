package jetstream

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/enginetest"
	"github.com/tarnproject/tarn/internal/testsize"
	"github.com/tarnproject/tarn/jetstream/embedded"
	"github.com/tarnproject/tarn/kube"
)

var (
	kills = testsize.Flag("kills", 4, 2, "how often TestKills kills the feeder or the server")
	seed  = flag.Uint64("seed", 1, "what TestKills does")
)

// These variables have the test binary feed, or serve, in a process of its own.
const (
	feedFrom, feedTo    = "TARN_TEST_FEED_FROM", "TARN_TEST_FEED_TO"
	serveIn, serveUnder = "TARN_TEST_NATS_DIR", "TARN_TEST_NATS_LISTEN"
)

// killed is what the feeders of TestKills write to: a stream, so that all states are there.
var killed = Bucket{Name: "configmaps", Events: true, Lease: 100 * time.Millisecond}

// runServer serves until it is killed.
func runServer() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := embedded.Start(embedded.Options{Dir: os.Getenv(serveIn), Listen: os.Getenv(serveUnder)})
	if err != nil {
		return err
	}
	defer s.Stop()
	<-ctx.Done()
	return nil
}

// runFeeder feeds ConfigMaps until it is killed.
func runFeeder() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(feedFrom))
	if err != nil {
		return err
	}
	nc, err := nats.Connect(os.Getenv(feedTo), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	sink, err := New(js, killed, Objects[*corev1.ConfigMap]())
	if err != nil {
		return err
	}
	if os.Getpid()%2 == 0 {
		sink.batchSize = 4 // so that every second feeder writes chains
	}
	for sink.Claim(ctx) != nil { // the one before, or the server, is to be waited for
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	replica, err := kube.Reflect[*corev1.ConfigMap](ctx, config, kube.Sink(func(of kube.Origin) (tarn.Sink[*corev1.ConfigMap], error) {
		sink.SetOrigin(of.Selection(), of.ServerUID)
		return sink, nil
	}))
	if err != nil {
		return err
	}
	<-replica.Done()
	return nil
}

// mortal is a server in a process of its own.
type mortal struct {
	dir, listen string
	cmd         *exec.Cmd
}

func (m *mortal) start() error {
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(os.Environ(), serveIn+"="+m.dir, serveUnder+"="+m.listen)
	m.cmd.Stderr = os.Stderr
	return m.cmd.Start()
}

func (m *mortal) kill() {
	_ = m.cmd.Process.Kill() // it may have ended
	_ = m.cmd.Wait()
}

// The feeder and the server are killed at random moments while objects change. Afterwards
// each state is there once, in order, or within a gap.
func TestKills(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mortal{dir: t.TempDir(), listen: listener.Addr().String()}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	defer func() { m.kill() }()
	address := "nats://" + m.listen
	nc, err := nats.Connect(address, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	engine := readable(bucketClient{js: js, bucket: killed})
	engine.Feed = func(kubeconfig string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), feedFrom+"="+kubeconfig, feedTo+"="+address)
		return cmd
	}
	engine.Kill, engine.Start = m.kill, m.start
	outcome := enginetest.Run(t, engine, kills(), *seed)
	fmt.Println("jetstream:", outcome)
}

// readable is an engine that can be read.
func readable(b bucketClient) enginetest.Engine {
	return enginetest.Engine{
		Position: func(ctx context.Context) (tarn.Version, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			at, err := b.checkpoint(ctx)
			if positions := at.positions(); len(positions) == 1 && !at.Incomplete {
				return positions[0].Version, err
			}
			return "", err
		},
		States: func(ctx context.Context) ([]enginetest.State, error) { return everyState(ctx, b) },
		Gaps:   func(context.Context) ([]tarn.Gap, error) { return gapsOf(b) },
		Present: func(ctx context.Context) (map[tarn.Key]tarn.Version, error) {
			all := map[tarn.Key]tarn.Version{}
			held, err := b.states(ctx)
			for key, is := range held {
				if !is.deleted {
					all[key] = is.Version
				}
			}
			return all, err
		},
	}
}

// everyState reads all states of a stream, in its order.
func everyState(ctx context.Context, b bucketClient) (all []enginetest.State, err error) {
	consumer, err := b.js.OrderedConsumer(ctx, b.bucket.stream(), jetstream.OrderedConsumerConfig{HeadersOnly: true})
	if err != nil {
		return nil, err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, err
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, err
		}
		if key, ok := b.objectKey(strings.TrimPrefix(m.Subject(), b.bucket.prefix())); ok {
			is := stateOf(key, m.Headers())
			all = append(all, enginetest.State{Key: key, Version: is.Version, Deleted: is.deleted, Inferred: is.missed})
		}
		if meta, err := m.Metadata(); err != nil || meta.NumPending == 0 {
			return all, err
		}
	}
}
