package faults_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/faults"
)

// startTextServer serves connections of a listener: it sends a fixed text to each
// client, reports what it received in answer, and closes the connection.
func startTextServer(t *testing.T, listener net.Listener) (received <-chan []byte) {
	text := make(chan []byte, 100)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer c.Close()
				if _, err := c.Write(responseBody); err != nil {
					return
				}
				answer, _ := io.ReadAll(c)
				text <- answer
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		group.Wait()
	})
	return text
}

func loopback(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// readAll connects, and reads until the end.
func readAll(t *testing.T, dial faults.DialFunc, address string, silenceTimeout time.Duration) ([]byte, error) {
	t.Helper()
	c, err := dial(t.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if silenceTimeout > 0 {
		if err := c.SetReadDeadline(time.Now().Add(silenceTimeout)); err != nil {
			t.Fatal(err)
		}
	}
	text := make([]byte, len(responseBody))
	n, err := io.ReadFull(c, text)
	return text[:n], err
}

var plainDial faults.DialFunc = new(net.Dialer).DialContext

// silenceTimeout is in real time: nothing else shows silence on a real connection.
const silenceTimeout = 30 * time.Millisecond

// What the server sends has the same faults, whichever side they are put on.
func TestConnectionFaults(t *testing.T) {
	type check func(t *testing.T, text []byte, err error)
	begins := func(text []byte) bool { return len(text) <= 100 && bytes.HasPrefix(responseBody, text) }
	for _, test := range []struct {
		kind faults.Kind
		// dial is as listener if nil.
		listener, dial check
		silenceTimeout time.Duration
	}{
		{kind: faults.Refuse,
			listener: func(t *testing.T, text []byte, err error) {
				if len(text) > 0 || err == nil {
					t.Errorf("got %q, %v", text, err)
				}
			},
			dial: func(t *testing.T, _ []byte, err error) {
				if !errors.Is(err, syscall.ECONNREFUSED) || !errors.Is(err, faults.ErrInjected) {
					t.Errorf("got %v", err)
				}
			}},
		{kind: faults.Reset,
			listener: func(t *testing.T, text []byte, err error) {
				if !begins(text) || !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("got %q, %v", text, err)
				}
			},
			dial: func(t *testing.T, text []byte, err error) {
				if !begins(text) || !errors.Is(err, syscall.ECONNRESET) || !errors.Is(err, faults.ErrInjected) {
					t.Errorf("got %q, %v", text, err)
				}
			}},
		{kind: faults.Truncate,
			listener: func(t *testing.T, text []byte, err error) {
				if !begins(text) || err != io.ErrUnexpectedEOF && err != io.EOF {
					t.Errorf("got %q, %v", text, err)
				}
			},
		},
		{kind: faults.Stall, silenceTimeout: silenceTimeout,
			listener: func(t *testing.T, text []byte, err error) {
				if !begins(text) || !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("got %q, %v", text, err)
				}
			},
		},
		{kind: faults.Garble,
			listener: func(t *testing.T, text []byte, err error) {
				if err != nil || bytes.Equal(text, responseBody) {
					t.Errorf("got %q, %v", text, err)
				}
			},
		},
	} {
		const times = 10
		limits := faults.Limits{Bytes: 100}
		t.Run(string(test.kind)+" by the listener", func(t *testing.T) {
			plan := faults.New(1, faults.Mix{test.kind: 1}).Within(limits)
			listener := faults.Listener(loopback(t), plan, "front")
			startTextServer(t, listener)
			for range times {
				text, err := readAll(t, plainDial, listener.Addr().String(), test.silenceTimeout)
				test.listener(t, text, err)
			}
			if n := plan.History().Counts()[test.kind]; n != times {
				t.Errorf("happened %d times:\n%s", n, plan.History())
			}
		})
		t.Run(string(test.kind)+" by the dialer", func(t *testing.T) {
			plan := faults.New(1, faults.Mix{test.kind: 1}).Within(limits)
			listener := loopback(t)
			startTextServer(t, listener)
			for range times {
				text, err := readAll(t, faults.Dial(plainDial, plan, "back"), listener.Addr().String(), test.silenceTimeout)
				if test.dial != nil {
					test.dial(t, text, err)
				} else {
					test.listener(t, text, err)
				}
			}
			if n := plan.History().Counts()[test.kind]; n != times {
				t.Errorf("happened %d times:\n%s", n, plan.History())
			}
		})
	}
}

// Neither side of a stalled connection gets what the other one writes, and both
// may write.
func TestStalledConnectionIsHalfOpen(t *testing.T) {
	for _, side := range []string{"listener", "dialer"} {
		t.Run(side, func(t *testing.T) {
			plan := faults.New(1, faults.Mix{faults.Stall: 1}).Within(faults.Limits{Bytes: 100})
			listener, dial := loopback(t), plainDial
			if side == "listener" {
				listener = faults.Listener(listener, plan, "front")
			} else {
				dial = faults.Dial(dial, plan, "back")
			}
			received := startTextServer(t, listener)
			c, err := dial(t.Context(), "tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(silenceTimeout))
			if _, err := io.Copy(io.Discard, c); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("it ended with %v", err)
			}
			if n, err := c.Write([]byte("are you there?")); n != 14 || err != nil {
				t.Errorf("writing gives %d, %v", n, err)
			}
			c.Close()
			if text := <-received; len(text) > 0 {
				t.Errorf("the other side received %q", text)
			}
		})
	}
}

// A connection without faults is unchanged.
func TestCalmConnection(t *testing.T) {
	plan := faults.New(1, nil)
	listener := faults.Listener(loopback(t), plan, "front")
	received := startTextServer(t, listener)
	c, err := faults.Dial(plainDial, plan, "back")(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, len(responseBody))
	if _, err := io.ReadFull(c, text); err != nil || !bytes.Equal(text, responseBody) {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := c.Write([]byte("thanks")); err != nil {
		t.Error(err)
	}
	c.Close()
	if answer := <-received; string(answer) != "thanks" {
		t.Errorf("the answer is %q", answer)
	}
}

func TestConnectionDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := faults.New(1, faults.Mix{faults.Delay: 1}).Within(faults.Limits{Delay: time.Minute})
		far, near := net.Pipe()
		dial := faults.Dial(func(context.Context, string, string) (net.Conn, error) { return near, nil }, plan, "back")
		c, err := dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = far.Write(responseBody) }()
		start := time.Now()
		n, err := c.Read(make([]byte, len(responseBody)))
		if took := time.Since(start); n != len(responseBody) || err != nil || took < time.Millisecond || took > time.Minute {
			t.Errorf("read %d bytes after %s, %v", n, took, err)
		}
		start = time.Now()
		go func() { _, _ = far.Write(responseBody) }()
		if _, err := c.Read(make([]byte, len(responseBody))); err != nil || time.Since(start) != 0 {
			t.Errorf("the second word is late too: %s, %v", time.Since(start), err)
		}
		c.Close()
		far.Close()
	})
}

// Closing a connection ends a delay.
func TestDelayedConnectionCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := faults.New(1, faults.Mix{faults.Delay: 1}).Within(faults.Limits{Delay: time.Minute})
		far, near := net.Pipe()
		defer far.Close()
		c, err := faults.Dial(func(context.Context, string, string) (net.Conn, error) { return near, nil }, plan, "back")(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Microsecond, func() { c.Close() })
		start := time.Now()
		if _, err := c.Read(make([]byte, 1)); err == nil || time.Since(start) != time.Microsecond {
			t.Errorf("it ended after %s, %v", time.Since(start), err)
		}
	})
}
