package jetstream

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tarnproject/tarn"
)

// freeAddresses are of ports that nobody listens on.
func freeAddresses(t *testing.T, n int) (all []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // until all are known
		all = append(all, l.Addr().String())
	}
	return all
}

// startCluster starts three servers that know each other, and connects to one of them.
func startCluster(t *testing.T) jetstream.JetStream {
	t.Helper()
	addresses := freeAddresses(t, 3)
	var all []*natsserver.Server
	for i, address := range addresses {
		_, port, _ := strings.Cut(address, ":")
		o := &natsserver.Options{
			ServerName: fmt.Sprint("server-", i), JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
			Host: "127.0.0.1", Port: natsserver.RANDOM_PORT,
			Cluster: natsserver.ClusterOpts{Name: "tarn", Host: "127.0.0.1"},
			Routes:  natsserver.RoutesFromStr("nats://" + strings.Join(addresses, ",nats://")),
		}
		if _, err := fmt.Sscan(port, &o.Cluster.Port); err != nil {
			t.Fatal(err)
		}
		s, err := natsserver.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
		s.Start()
		t.Cleanup(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
	}
	eventually(t, "the cluster has a leader", func() bool {
		for _, s := range all {
			if s.JetStreamIsLeader() {
				return all[0].ReadyForConnections(time.Second)
			}
		}
		return false
	}, func() string { return "" })
	return connect(t, all[0].ClientURL())
}

// A bucket with replicas takes large and small commits, once each, and a chain that was begun
// is continued.
func TestReplicatedBucket(t *testing.T) {
	js := startCluster(t)
	b := Bucket{Name: "b", Events: true, Replicas: 3}
	s := newSink(t, js, b)
	eventually(t, "the bucket is there", func() bool {
		_, err := s.Open(t.Context(), nil)
		return err == nil
	}, func() string { return "" })
	defer s.Close()
	large := largeBatch()
	begin(t, s, large, 5*chunk)
	large.Again = true
	commit(t, s, large)
	if s.batchesOnly {
		t.Error("the chain was refused")
	}
	small := to("9001", change(tarn.Update, "ns/0", "9001", "small"))
	commit(t, s, small)
	large.Changes = append(large.Changes, small.Changes...)
	onceEach(t, s.bucketClient, large)
}

// Somebody gives a bucket replicas. A feeder that was told of no number leaves them there.
func TestReplicasSetByHand(t *testing.T) {
	js := startCluster(t)
	replicas := func(b Bucket) int {
		t.Helper()
		s := newSink(t, js, b)
		eventually(t, "the bucket is there", func() bool {
			_, err := s.Open(t.Context(), nil)
			return err == nil
		}, func() string { return "" })
		defer s.Close()
		stream, err := js.Stream(t.Context(), b.stream())
		if err != nil {
			t.Fatal(err)
		}
		return stream.CachedInfo().Config.Replicas
	}
	if n := replicas(Bucket{Name: "b"}); n != 1 {
		t.Errorf("it begins with %d replicas", n)
	}
	stream, err := js.Stream(t.Context(), "KV_b")
	if err != nil {
		t.Fatal(err)
	}
	more := stream.CachedInfo().Config
	more.Replicas = 3
	if _, err := js.UpdateStream(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	if n := replicas(Bucket{Name: "b"}); n != 3 {
		t.Errorf("the next feeder has left %d of 3 replicas", n)
	}
	if n := replicas(Bucket{Name: "b", Replicas: 1}); n != 1 {
		t.Errorf("it has %d replicas, though 1 is asked for", n)
	}
}
