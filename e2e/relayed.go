package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/tarnproject/tarn/relay"
	"github.com/tarnproject/tarn/relay/h2"
)

// Relayed is a server whose clients talk to a relay in front of it. What a test does to
// the server, it does to the origin of the relay.
type Relayed struct {
	Server
	*Relay
}

// relayed puts a relay in front of a server, which reaches it by a config.
func relayed(t testing.TB, origin Server, config *rest.Config) *Relayed {
	t.Helper()
	return &Relayed{Server: origin, Relay: startRelay(t, config)}
}

// Config, Proxy and writeKubeconfig lead to the relay.
func (r *Relayed) Config(token string) *rest.Config  { return r.Endpoint.Config(token) }
func (r *Relayed) Proxy() *Proxy                     { return r.Endpoint.Proxy() }
func (r *Relayed) Namespace(name string)             { r.Server.Namespace(name) }
func (r *Relayed) writeKubeconfig(dir string) string { return r.Endpoint.writeKubeconfig(dir) }

// Relay is a relay behind TLS on loopback.
type Relay struct {
	*Endpoint
	relay    *relay.Relay
	listener *trackedListener
	stop     func()
}

// startRelay starts a relay, of pods unless other resources are named, and waits until it
// has its copies. It ends with the test.
func startRelay(t testing.TB, origin *rest.Config, resources ...schema.GroupVersionResource) *Relay {
	t.Helper()
	if len(resources) == 0 {
		resources = []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("pods")}
	}
	authority, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(authority, key)
	if err != nil {
		t.Fatal(err)
	}
	serving, err := relay.New(relay.Options{
		Config:    origin,
		Resources: resources,
		DrainTime: time.Second,
		Logger:    slog.New(slog.DiscardHandler), // what fails is in Health, and seen by clients
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler:   serving,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		ErrorLog:  log.New(io.Discard, "", 0), // clients are cut off on purpose
	}
	h2.Configure(server)
	r := &Relay{relay: serving, listener: &trackedListener{Listener: listener}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = serving.Run(ctx) })                    // says that ctx has ended
	running.Go(func() { _ = server.ServeTLS(r.listener, "", "") }) // says that it was closed
	r.stop = sync.OnceFunc(func() {
		cancel()
		_ = server.Close()
		running.Wait()
	})
	t.Cleanup(r.stop)
	r.Endpoint = newEndpoint(t, listener.Addr().String(), authority)
	r.eventually(time.Minute, func(context.Context) error {
		if err := serving.Ready(); err != nil {
			return fmt.Errorf("the relay is not ready: %w", err)
		}
		return nil
	})
	return r
}

// kill resets all connections and stops listening, as a crash would.
func (r *Relay) kill() {
	r.listener.reset()
	r.stop()
}
