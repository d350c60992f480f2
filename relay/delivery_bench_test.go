package relay

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/relay/h2"
)

const deliveryClients = "TARN_DELIVERY_CLIENTS"

// BenchmarkDelivery is the CPU of a relay for each event that it sends to a client, over
// TLS, with 200 clients in a process of their own that read and decode nothing. An
// operation is an update of a pod, large or small, so it is 200 deliveries. The origin is in
// the process of the relay.
//
//	go test -run - -bench Delivery ./relay
func BenchmarkDelivery(b *testing.B) {
	const clients = 200
	for _, of := range []struct {
		protocol string
		size     int
	}{{"http/1.1", 10_000}, {"h2", 10_000}, {"h2", 500}} {
		protocol := of.protocol
		b.Run(fmt.Sprint(protocol, " ", of.size), func(b *testing.B) {
			origin := apiserver.New(apiserver.Options{AnyNamespace: true})
			defer origin.Close()
			front := httptest.NewServer(origin)
			defer front.Close()
			updated := pod("updated", "0")
			updated.Annotations = map[string]string{"filler": strings.Repeat("x", of.size-200)}
			if err := origin.Put(updated); err != nil {
				b.Fatal(err)
			}
			relay, err := New(Options{
				Config: &rest.Config{Host: front.URL, QPS: -1}, Resources: []schema.GroupVersionResource{pods}, Gate: Everybody{},
				OwnConnections: true, DrainTime: time.Millisecond, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			var running sync.WaitGroup
			running.Go(func() { _ = relay.Run(ctx) })
			defer running.Wait()
			defer cancel()
			if err := relay.WaitSynced(ctx); err != nil {
				b.Fatal(err)
			}
			server := httptest.NewUnstartedServer(relay)
			server.EnableHTTP2 = true
			h2.Configure(server.Config)
			server.StartTLS()
			defer server.Close()

			child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestDeliveryClients$")
			child.Env = append(os.Environ(), deliveryClients+"="+strings.Join([]string{server.Listener.Addr().String(), protocol, strconv.Itoa(clients), origin.Version()}, " "))
			child.Stderr = os.Stderr
			said, err := child.StdoutPipe()
			if err != nil {
				b.Fatal(err)
			}
			asked, err := child.StdinPipe()
			if err != nil {
				b.Fatal(err)
			}
			if err := child.Start(); err != nil {
				b.Fatal(err)
			}
			defer func() {
				_ = asked.Close()
				_ = child.Wait()
			}()
			await := func(events int) {
				fmt.Fprintln(asked, events)
				var ok string
				if _, err := fmt.Fscan(said, &ok); err != nil || ok != "ok" {
					b.Fatal(ok, err)
				}
			}
			await(0)
			before, events := cpuTime(b), 0
			for b.Loop() {
				updated.Labels["n"] = strconv.Itoa(events)
				if err := origin.Put(updated); err != nil {
					b.Fatal(err)
				}
				events += clients
				await(events)
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(events)/1e3, "cpu-µs/delivery")
		})
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestDeliveryClients are the clients of BenchmarkDelivery. For each number that it reads
// from its input, it answers once so many events have come.
func TestDeliveryClients(t *testing.T) {
	var address, protocol, version string
	var count int
	if n, _ := fmt.Sscan(os.Getenv(deliveryClients), &address, &protocol, &count, &version); n != 4 {
		t.Skip("started by BenchmarkDelivery")
	}
	came := make(chan struct{}, 1<<16)
	var transport *http.Transport
	for i := range count {
		if protocol == "http/1.1" || i%50 == 0 {
			transport = &http.Transport{
				TLSClientConfig:    &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}},
				DisableCompression: true, ForceAttemptHTTP2: protocol == "h2", ReadBufferSize: 16 << 10,
				DialContext: (&net.Dialer{}).DialContext,
			}
		}
		request, err := http.NewRequest(http.MethodGet, "https://"+address+"/api/v1/pods?watch=true&resourceVersion="+version, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
		response, err := transport.RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(response, err)
		}
		go func() {
			defer response.Body.Close()
			buffer := make([]byte, 1<<16)
			for {
				if _, err := io.ReadFull(response.Body, buffer[:4]); err != nil {
					return
				}
				n := int(buffer[0])<<24 | int(buffer[1])<<16 | int(buffer[2])<<8 | int(buffer[3])
				if _, err := io.ReadFull(response.Body, buffer[:n]); err != nil {
					return
				}
				came <- struct{}{}
			}
		}()
	}
	have := 0
	for {
		var want int
		if _, err := fmt.Scan(&want); err != nil {
			os.Exit(0)
		}
		for have < want {
			<-came
			have++
		}
		fmt.Println("ok")
	}
}
