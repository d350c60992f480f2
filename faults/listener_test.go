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

// speakers listen on loopback, send a fixed text to each client, report what they
// received in answer, and hang up.
func speakers(t *testing.T, listener net.Listener) (heard <-chan []byte) {
	words := make(chan []byte, 100)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer c.Close()
				if _, err := c.Write(speech); err != nil {
					return
				}
				answer, _ := io.ReadAll(c)
				words <- answer
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		group.Wait()
	})
	return words
}

func loopback(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// hear connects, and reads until the end.
func hear(t *testing.T, dial faults.DialFunc, address string, patience time.Duration) ([]byte, error) {
	t.Helper()
	c, err := dial(t.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if patience > 0 {
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
	}
	words := make([]byte, len(speech))
	n, err := io.ReadFull(c, words)
	return words[:n], err
}

var plainDial faults.DialFunc = new(net.Dialer).DialContext

// patience is in real time: nothing else shows silence on a real connection.
const patience = 30 * time.Millisecond

// What the server sends has the same faults, whichever side they are put on.
func TestConnectionFaults(t *testing.T) {
	type check func(t *testing.T, words []byte, err error)
	begins := func(words []byte) bool { return len(words) <= 100 && bytes.HasPrefix(speech, words) }
	for _, test := range []struct {
		kind faults.Kind
		// dial is as listener if nil.
		listener, dial check
		patience       time.Duration
	}{
		{kind: faults.Refuse,
			listener: func(t *testing.T, words []byte, err error) {
				if len(words) > 0 || err == nil {
					t.Errorf("got %q, %v", words, err)
				}
			},
			dial: func(t *testing.T, _ []byte, err error) {
				if !errors.Is(err, syscall.ECONNREFUSED) || !errors.Is(err, faults.ErrInjected) {
					t.Errorf("got %v", err)
				}
			}},
		{kind: faults.Reset,
			listener: func(t *testing.T, words []byte, err error) {
				if !begins(words) || !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("got %q, %v", words, err)
				}
			},
			dial: func(t *testing.T, words []byte, err error) {
				if !begins(words) || !errors.Is(err, syscall.ECONNRESET) || !errors.Is(err, faults.ErrInjected) {
					t.Errorf("got %q, %v", words, err)
				}
			}},
		{kind: faults.Truncate,
			listener: func(t *testing.T, words []byte, err error) {
				if !begins(words) || err != io.ErrUnexpectedEOF && err != io.EOF {
					t.Errorf("got %q, %v", words, err)
				}
			},
		},
		{kind: faults.Stall, patience: patience,
			listener: func(t *testing.T, words []byte, err error) {
				if !begins(words) || !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("got %q, %v", words, err)
				}
			},
		},
		{kind: faults.Garble,
			listener: func(t *testing.T, words []byte, err error) {
				if err != nil || bytes.Equal(words, speech) {
					t.Errorf("got %q, %v", words, err)
				}
			},
		},
	} {
		const times = 10
		limits := faults.Limits{Bytes: 100}
		t.Run(string(test.kind)+" by the listener", func(t *testing.T) {
			plan := faults.New(1, faults.Mix{test.kind: 1}).Within(limits)
			listener := faults.Listener(loopback(t), plan, "front")
			speakers(t, listener)
			for range times {
				words, err := hear(t, plainDial, listener.Addr().String(), test.patience)
				test.listener(t, words, err)
			}
			if n := plan.History().Counts()[test.kind]; n != times {
				t.Errorf("happened %d times:\n%s", n, plan.History())
			}
		})
		t.Run(string(test.kind)+" by the dialer", func(t *testing.T) {
			plan := faults.New(1, faults.Mix{test.kind: 1}).Within(limits)
			listener := loopback(t)
			speakers(t, listener)
			for range times {
				words, err := hear(t, faults.Dial(plainDial, plan, "back"), listener.Addr().String(), test.patience)
				if test.dial != nil {
					test.dial(t, words, err)
				} else {
					test.listener(t, words, err)
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
			heard := speakers(t, listener)
			c, err := dial(t.Context(), "tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, c); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("it ended with %v", err)
			}
			if n, err := c.Write([]byte("are you there?")); n != 14 || err != nil {
				t.Errorf("writing gives %d, %v", n, err)
			}
			c.Close()
			if words := <-heard; len(words) > 0 {
				t.Errorf("the other side heard %q", words)
			}
		})
	}
}

// A connection without faults is unchanged.
func TestCalmConnection(t *testing.T) {
	plan := faults.New(1, nil)
	listener := faults.Listener(loopback(t), plan, "front")
	heard := speakers(t, listener)
	c, err := faults.Dial(plainDial, plan, "back")(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	words := make([]byte, len(speech))
	if _, err := io.ReadFull(c, words); err != nil || !bytes.Equal(words, speech) {
		t.Errorf("got %q, %v", words, err)
	}
	if _, err := c.Write([]byte("thanks")); err != nil {
		t.Error(err)
	}
	c.Close()
	if answer := <-heard; string(answer) != "thanks" {
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
		go func() { _, _ = far.Write(speech) }()
		start := time.Now()
		n, err := c.Read(make([]byte, len(speech)))
		if took := time.Since(start); n != len(speech) || err != nil || took < time.Millisecond || took > time.Minute {
			t.Errorf("read %d bytes after %s, %v", n, took, err)
		}
		start = time.Now()
		go func() { _, _ = far.Write(speech) }()
		if _, err := c.Read(make([]byte, len(speech))); err != nil || time.Since(start) != 0 {
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
