package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/etcd"
	"github.com/tarnproject/tarn/memory"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// server is an etcd in the process, which can be stopped, copied and started again.
type server struct {
	dir          string
	client, peer url.URL
	etcd         *embed.Etcd
}

func newServer(dir string) (*server, error) {
	s := &server{dir: dir}
	for _, u := range []*url.URL{&s.client, &s.peer} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		*u = url.URL{Scheme: "http", Host: listener.Addr().String()}
		if err := listener.Close(); err != nil {
			return nil, err
		}
	}
	return s, s.start()
}

func (s *server) start() (err error) {
	config := embed.NewConfig()
	config.Dir = s.dir
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{s.client}, []url.URL{s.client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{s.peer}, []url.URL{s.peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	if s.etcd, err = embed.StartEtcd(config); err != nil {
		return err
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case <-time.After(time.Minute):
		return errors.New("etcd is not ready after a minute")
	}
}

func (s *server) stop() {
	if s.etcd != nil {
		s.etcd.Close()
		s.etcd = nil
	}
}

func (s *server) settings() clientv3.Config {
	return clientv3.Config{Endpoints: []string{s.client.String()}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()}
}

// testServer is a server that ends with a test.
type testServer struct {
	*server
	t testing.TB
}

func startServer(t testing.TB) testServer {
	t.Helper()
	s, err := newServer(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return testServer{s, t}
}

func (s testServer) restart() {
	s.t.Helper()
	s.stop()
	if err := s.start(); err != nil {
		s.t.Fatal(err)
	}
}

// backup copies the data, and returns what puts the server back to it.
func (s testServer) backup() (restore func()) {
	s.t.Helper()
	saved := s.dir + "-saved"
	s.stop()
	if err := os.CopyFS(saved, os.DirFS(s.dir)); err != nil {
		s.t.Fatal(err)
	}
	s.restart()
	return func() {
		s.stop()
		if err := errors.Join(os.RemoveAll(s.dir), os.Rename(saved, s.dir)); err != nil {
			s.t.Fatal(err)
		}
		s.restart()
	}
}

// connect makes a client, which ends with the test.
func (s testServer) connect(change ...func(*clientv3.Config)) *clientv3.Client {
	s.t.Helper()
	config := s.settings()
	for _, c := range change {
		c(&config)
	}
	client, err := clientv3.New(config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

const prefix = "/things/"

type replica = tarn.Replica[*etcd.Entry[string]]

// follow starts a replica of the prefix, which ends with the test.
func follow(t testing.TB, source tarn.Source[*etcd.Entry[string]]) *replica {
	t.Helper()
	r, err := tarn.NewReplica(source, memory.New[*etcd.Entry[string]](), tarn.Options[*etcd.Entry[string]]{
		Name: "things", OnError: func(_ context.Context, err error) { t.Logf("reported: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = r.Run(ctx) }() // says that ctx has ended
	t.Cleanup(func() {
		cancel()
		<-r.Done()
	})
	waiting, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	if err := r.WaitSynced(waiting); err != nil {
		t.Fatal(err)
	}
	return r
}

func newSource(t testing.TB, client *clientv3.Client) *etcd.Source[string] {
	t.Helper()
	source, err := etcd.NewSource(client, prefix, etcd.Text)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// contents are values, and where they come from, by key.
func contents(r *replica) map[string]string {
	all := map[string]string{}
	for key, e := range r.All() {
		all[string(key)] = fmt.Sprintf("%s@%d created %d, %d writes, lease %x", e.Value, e.Revision, e.Created, e.Writes, e.Lease)
	}
	return all
}

// equals waits until the replica has what the server has.
func equals(t testing.TB, client *clientv3.Client, r *replica) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		response, err := client.Get(t.Context(), prefix, clientv3.WithPrefix())
		want := map[string]string{}
		if err == nil {
			for _, kv := range response.Kvs {
				want[string(kv.Key[len(prefix):])] = fmt.Sprintf("%s@%d created %d, %d writes, lease %x", kv.Value, kv.ModRevision, kv.CreateRevision, kv.Version, kv.Lease)
			}
			if maps.Equal(want, contents(r)) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the replica has %v, and etcd %v (%v); %s", contents(r), want, err, r.Health())
		}
		time.Sleep(20 * time.Millisecond)
	}
}
