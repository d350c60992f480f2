package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/proxytest"
	"github.com/tarnproject/tarn/jetstream/embedded"
)

// lateNetwork passes connections on to a server. What it holds arrives late: after the client
// has lost that connection, and has made another one.
type lateNetwork struct {
	*proxytest.Proxy

	mu    sync.Mutex
	open  []*heldConn
	until string
}

type heldConn struct {
	client, server net.Conn
	holding        bool
	held           []byte
}

func startLateNetwork(t *testing.T, server string) *lateNetwork {
	t.Helper()
	n := &lateNetwork{}
	n.Proxy = proxytest.StartCarrying(t, "tcp", strings.TrimPrefix(server, "nats://"), n.carry)
	return n
}

func (n *lateNetwork) carry(client, server net.Conn) {
	c := &heldConn{client: client, server: server}
	n.mu.Lock()
	n.open = append(n.open, c)
	n.mu.Unlock()
	var answers sync.WaitGroup
	answers.Go(func() {
		_, _ = io.Copy(client, server)     // ends with the client
		_, _ = io.Copy(io.Discard, server) // what was held is answered too
	})
	n.pass(c)
	answers.Wait()
}

func (n *lateNetwork) pass(c *heldConn) {
	chunk := make([]byte, 16<<10)
	for {
		read, err := c.client.Read(chunk)
		n.mu.Lock()
		if n.until != "" && bytes.Contains(chunk[:read], []byte(n.until)) {
			c.holding, n.until = true, ""
		}
		if c.holding {
			c.held = append(c.held, chunk[:read]...)
		} else {
			_, _ = c.server.Write(chunk[:read])
		}
		if err != nil && !c.holding {
			_ = c.server.Close()
		}
		n.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// hold keeps from the server what clients send over the connections that they have now.
func (n *lateNetwork) hold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.open {
		c.holding = true
	}
}

// holdFrom holds what a client sends from a text on.
func (n *lateNetwork) holdFrom(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.until = text
}

func (n *lateNetwork) holds(text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.open {
		if bytes.Contains(c.held, []byte(text)) {
			return true
		}
	}
	return false
}

// cut closes the held connections, on the side of the client only.
func (n *lateNetwork) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.open {
		if c.holding {
			_ = c.client.Close()
		}
	}
}

// release has the server get what was held.
func (n *lateNetwork) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.open {
		_, _ = c.server.Write(c.held)
		c.held = nil
	}
}

// interrupted is a codec that calls a function once, before it encodes the next object.
type interrupted struct {
	objectsCodec
	mu   *sync.Mutex
	next *func()
}

func (c interrupted) Append(buf []byte, o object) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if do := *c.next; do != nil {
		*c.next = nil
		do()
	}
	return c.objectsCodec.Append(buf, o)
}

func (c interrupted) before(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.next = do
}

// late is a sink whose messages can arrive late.
type late struct {
	*Sink[object]
	t       *testing.T
	network *lateNetwork
	codec   interrupted
	// direct reads the bucket by another connection.
	direct bucketClient
}

func openedLate(t *testing.T, b Bucket, change ...func(*embedded.Options)) late {
	t.Helper()
	server := startServer(t, change...)
	network := startLateNetwork(t, server.URL())
	codec := interrupted{objects, &sync.Mutex{}, new(func())}
	s, err := New[object](connect(t, "nats://"+network.Address()), b, codec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return late{s, t, network, codec, bucketClient{js: server.connect(), bucket: s.bucket}}
}

// unanswered does something whose messages are held, and whose connection is lost then.
func (l late) unanswered(do func(ctx context.Context) error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 300*time.Millisecond)
	defer cancel()
	reconnects := l.js.Conn().Stats().Reconnects
	if err := do(ctx); err == nil {
		l.t.Fatal("it succeeds without an answer")
	}
	eventually(l.t, "the network holds the checkpoint", func() bool { return l.network.holds(checkpointKey) }, func() string { return "" })
	l.network.cut()
	eventually(l.t, "the client connects again", func() bool {
		return l.js.Conn().Stats().Reconnects > reconnects && l.js.Conn().IsConnected()
	}, func() string { return "" })
}

// arrive has what was held arrive now.
func (l late) arrive() {
	before, err := l.direct.checkpoint(l.t.Context())
	if err != nil {
		l.t.Error(err)
	}
	l.network.release()
	eventually(l.t, "it arrives", func() bool {
		at, err := l.direct.checkpoint(l.t.Context())
		return err == nil && at.Serial > before.Serial
	}, func() string { return "" })
}

// What a feeder sent, and had no answer to, may arrive after it has looked whether it took
// effect, while it sends the same again. The feeder knows it as its own, and writes every
// state once.
func TestCommitThatArrivesLate(t *testing.T) {
	t.Parallel()
	small := to("2", change(tarn.Add, "a", "1", "x"), change(tarn.Add, "b", "2", "x"))
	larger := to("3", append(small.Changes[:2:2], change(tarn.Update, "a", "3", "y"))...)
	for name, c := range map[string]struct {
		first, second tarn.Batch[object]
		again         bool
	}{
		"the same batch":           {small, small, true},
		"a batch that grew":        {small, larger, false},
		"the beginning of a chain": {largeBatch(), largeBatch(), true},
	} {
		t.Run(name, func(t *testing.T) {
			l := openedLate(t, Bucket{Name: "b", Events: true})
			l.codec.before(l.network.hold)
			l.unanswered(func(ctx context.Context) error { return l.Commit(ctx, c.first) })
			l.codec.before(l.arrive)
			c.second.Again = c.again
			commit(t, l.Sink, c.second)
			onceEach(t, l.direct, c.second)
			if n := written(t, l.Sink); n != uint64(len(c.second.Changes)) {
				t.Errorf("%d messages are counted, want %d", n, len(c.second.Changes))
			}
		})
	}
	t.Run("a batch that was tried twice", func(t *testing.T) {
		l := openedLate(t, Bucket{Name: "b", Events: true})
		again := small
		again.Again = true
		for _, b := range []tarn.Batch[object]{small, again} {
			l.codec.before(l.network.hold)
			l.unanswered(func(ctx context.Context) error { return l.Commit(ctx, b) })
		}
		l.arrive()
		commit(t, l.Sink, again)
		onceEach(t, l.direct, small)
	})
	t.Run("a renewal of the lease", func(t *testing.T) {
		l := openedLate(t, Bucket{Name: "b", Events: true})
		l.network.hold()
		l.unanswered(func(ctx context.Context) error { return l.speak(ctx, false) })
		l.codec.before(l.arrive)
		commit(t, l.Sink, small)
		onceEach(t, l.direct, small)
	})
	t.Run("a commit before a renewal", func(t *testing.T) {
		l := openedLate(t, Bucket{Name: "b", Events: true})
		l.codec.before(l.network.hold)
		l.unanswered(func(ctx context.Context) error { return l.Commit(ctx, small) })
		if !l.recover(t.Context()) {
			t.Fatal("the checkpoint cannot be read")
		}
		l.arrive()
		l.renew(t.Context())
		if err := l.Disk().Err; err != nil {
			t.Errorf("Health says %v", err)
		}
		again := small
		again.Again = true
		commit(t, l.Sink, again)
		onceEach(t, l.direct, small)
	})
}

// An object that the server does not take is named by the commit that finds that an earlier
// attempt has taken effect, and its mark goes when the object becomes smaller.
func TestBadObjectOfACommitWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	l := openedLate(t, Bucket{Name: "b"}, func(o *embedded.Options) { o.MaxPayload = 64 << 10 })
	b := to("2", change(tarn.Add, "big", "1", strings.Repeat("x", 64<<10)), change(tarn.Add, "a", "2", ""))
	l.codec.before(l.network.hold)
	l.unanswered(func(ctx context.Context) error { return l.Commit(ctx, b) })
	l.arrive()
	b.Again = true
	err := l.Commit(t.Context(), b)
	bad, named := errors.AsType[tarn.ObjectErrors](err)
	if !named || len(bad) != 1 || bad[0].Key != "big" || bad[0].Version != "1" || !strings.Contains(bad[0].Err.Error(), "max_payload") {
		t.Errorf("Commit returned %v", err)
	}
	commit(t, l.Sink, to("3", change(tarn.Update, "big", "3", "small")))
	if page, err := newSource(t, l.direct.js, l.bucket).List(t.Context(), tarn.ListQuery{}); err != nil || len(page.Bad) != 0 || len(page.Items) != 2 {
		t.Errorf("the list is %+v (%v)", page, err)
	}
}

// A feeder that takes over again, and has no answer to that, is still told that another one
// wrote meanwhile.
func TestTakeOverWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for _, renewed := range []bool{false, true} {
		t.Run(fmt.Sprint("renewed ", renewed), func(t *testing.T) {
			l := openedLate(t, Bucket{Name: "b", Lease: 300 * time.Millisecond})
			commit(t, l.Sink, to("1", change(tarn.Add, "a", "1", "")))
			l.stop() // as if the process were paused
			l.running.Wait()
			second := newSink(t, l.direct.js, l.bucket)
			eventually(t, "the second takes over", func() bool {
				_, err := second.Open(t.Context(), nil)
				return err == nil
			}, func() string { return "" })
			commit(t, second, to("2", change(tarn.Add, "b", "2", "")))
			second.Close()

			l.known = false // as after any failure
			l.network.holdFrom("PUB " + l.bucket.prefix() + checkpointKey)
			next := to("3", change(tarn.Update, "a", "3", ""))
			l.unanswered(func(ctx context.Context) error { return l.Commit(ctx, next) })
			l.arrive()
			if renewed {
				l.renew(t.Context())
			}
			next.Again = true
			if err := l.Commit(t.Context(), next); !errors.Is(err, tarn.ErrSinkEmpty) {
				t.Errorf("Commit returned %v", err)
			}
			next.Again, next.Whole = false, true
			commit(t, l.Sink, next)
			if page, err := newSource(t, l.direct.js, l.bucket).List(t.Context(), tarn.ListQuery{}); err != nil || len(page.Items) != 1 {
				t.Errorf("the list is %+v (%v)", page, err)
			}
		})
	}
}

// A feeder that begins with a bucket of another source or selection says so in the bucket, also
// if the answer to the first thing that it wrote is lost.
func TestOriginIsRecordedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"a commit is next", "a renewal is next"} {
		t.Run(how, func(t *testing.T) {
			uid := func(uid string) func(context.Context) (string, error) {
				return func(context.Context) (string, error) { return uid, nil }
			}
			l := openedLate(t, Bucket{Name: "b", Of: "all", Source: uid("one")})
			if err := l.confirm(t.Context()); err != nil {
				t.Fatal(err)
			}
			commit(t, l.Sink, to("1", change(tarn.Add, "a", "1", "")))
			l.Close()
			second := l.bucket
			second.Of, second.Source = "some", uid("two")
			var err error
			if l.Sink, err = New[object](l.js, second, l.codec); err != nil {
				t.Fatal(err)
			}
			kept, err := l.Open(t.Context(), nil)
			if err != nil || len(kept.Positions) > 0 {
				t.Fatalf("it begins at %v (%v)", kept.Positions, err)
			}
			defer l.Close()
			if err := kept.Confirm(t.Context()); !errors.Is(err, tarn.ErrOtherSource) {
				t.Fatal(err)
			}
			l.network.hold()
			l.unanswered(func(ctx context.Context) error {
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.speak(ctx, false)
			})
			if how == "a renewal is next" {
				l.renew(t.Context())
				if at, err := l.direct.checkpoint(t.Context()); err != nil || at.Of != "some" || at.Source != "two" || len(at.Positions) > 0 {
					t.Errorf("the checkpoint is %+v (%v)", at, err)
				}
			}
			b := to("5", change(tarn.Add, "b", "5", ""))
			b.Whole = true
			commit(t, l.Sink, b)
			if at, err := l.direct.checkpoint(t.Context()); err != nil || at.Of != "some" || at.Source != "two" || len(at.Positions) != 1 {
				t.Errorf("the checkpoint is %+v (%v)", at, err)
			}
		})
	}
}
