package cli

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// doorman is a NATS server that takes clients, or refuses them, and does nothing else.
type doorman struct {
	net.Listener
	refuses           atomic.Bool
	refused, accepted atomic.Int64
}

func newDoorman(t *testing.T) *doorman {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &doorman{Listener: listener}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			d.serve(conn)
		}
	}()
	t.Cleanup(func() { listener.Close(); <-ended })
	return d
}

// serve greets a client, and has it go away again.
func (d *doorman) serve(conn net.Conn) {
	defer conn.Close()
	fmt.Fprint(conn, "INFO {\"server_id\":\"x\",\"version\":\"2.12.0\",\"headers\":true,\"max_payload\":1048576,\"auth_required\":true}\r\n")
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "PING") {
			continue
		}
		if d.refuses.Load() {
			d.refused.Add(1)
			fmt.Fprint(conn, "-ERR 'Authorization Violation'\r\n")
			return
		}
		d.accepted.Add(1)
		fmt.Fprint(conn, "PONG\r\n")
		return
	}
}

// A server that refuses a feeder which it took before, as while credentials are replaced, is
// asked again for as long as it does so.
func TestNATSRefusesForAWhile(t *testing.T) {
	d := newDoorman(t)
	e, err := openEngine(&feedOptions{to: "nats://u:p@" + d.Addr().String(), clusterName: "c"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	b := &broker{t: t}
	b.await("true", func() string { return fmt.Sprint(d.accepted.Load() > 0) })
	d.refuses.Store(true)
	b.await("true", func() string { return fmt.Sprint(d.refused.Load() > 3) })
	b.await("it is told why", func() string {
		err := e.claim(t.Context(), []mirror.Resource{{}})
		if _, later := err.(errNotYet); !later { //nolint:errorlint // it is the outermost one
			t.Fatalf("it gives up: %v", err)
		}
		if strings.Contains(err.Error(), "refuses") {
			return "it is told why"
		}
		return err.Error()
	})
	before := d.accepted.Load()
	d.refuses.Store(false)
	b.await("true", func() string { return fmt.Sprint(d.accepted.Load() > before) })
}

// A server that never took the feeder is not waited for.
func TestNATSRefuses(t *testing.T) {
	d := newDoorman(t)
	d.refuses.Store(true)
	e, err := openEngine(&feedOptions{to: "nats://u:p@" + d.Addr().String(), clusterName: "c"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	b := &broker{t: t}
	b.await("it ends", func() string {
		err := e.claim(t.Context(), []mirror.Resource{{}})
		if _, later := err.(errNotYet); later { //nolint:errorlint // it is the outermost one
			return "it waits"
		}
		if !strings.Contains(err.Error(), "check user, password and rights") {
			t.Fatal(err)
		}
		return "it ends"
	})
}
