package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// sentMark is before the time at which an object was written, in its annotations.
const sentMark = "tarn-bench-sent-"

// watches are clients that read as fast as they can, and decode nothing: what they cost
// would be the same with either server. They read as client-go does, the size of a frame and
// then the frame: over HTTP/2 each read of more than 4 KiB is announced to the server, so
// that smaller reads cost the server CPU.
type watches struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	clients []*http.Transport

	delays delays
	// events are the frames that came, and ended the watches that a server has closed.
	events, ended atomic.Int64
}

// audience says who watches what.
type audience struct {
	count int
	// streams is how many watches share a connection, 0 for connections of HTTP/1.1.
	streams int
	path    string
	query   func(i int) url.Values
	// atOnce has all of them connect at the same time.
	atOnce bool
}

func everything(int) url.Values { return url.Values{} }

// open opens watches, from a version on, and returns once all have been answered.
func open(ctx context.Context, to *server, a audience, version string) (*watches, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watches{cancel: cancel}
	trust, err := rest.TLSConfigFor(to.config)
	if err != nil {
		cancel()
		return nil, err
	}
	perClient := a.count
	if a.streams > 0 {
		perClient = a.streams
	}
	results := make(chan error, a.count)
	places := make(chan struct{}, 64) // so many connect at the same time
	if a.atOnce {
		places = make(chan struct{}, a.count)
	}
	var client *http.Transport
	var connected chan struct{}
	for i := range a.count {
		first := i%perClient == 0
		if first {
			client = newTransport(trust, a.streams > 0)
			w.clients = append(w.clients, client)
			connected = make(chan struct{})
		}
		transport, answered := client, connected
		query := a.query(i)
		query.Set("watch", "true")
		if version != "" {
			query.Set("resourceVersion", version)
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, to.config.Host+a.path+"?"+query.Encode(), nil)
		if err != nil {
			w.close()
			return nil, err
		}
		request.Header.Set("Accept", protobufType)
		request.Header.Set("Authorization", "Bearer "+to.config.BearerToken)
		places <- struct{}{}
		w.running.Go(func() {
			if a.streams > 0 && !first {
				<-answered // otherwise each would make a connection of its own
			}
			response, err := transport.RoundTrip(request)
			if first {
				close(answered)
			}
			<-places
			if err == nil && response.StatusCode != http.StatusOK {
				text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
				_ = response.Body.Close()
				err = fmt.Errorf("%s: %s: %s", request.URL, response.Status, text)
			}
			results <- err
			if err == nil {
				w.follow(ctx, response)
			}
		})
	}
	for range a.count {
		if err := <-results; err != nil {
			w.close()
			return nil, fmt.Errorf("%s: open %d watches: %w", to.name, a.count, err)
		}
	}
	return w, nil
}

func newTransport(trust *tls.Config, shared bool) *http.Transport {
	t := &http.Transport{TLSClientConfig: trust.Clone(), DisableCompression: true, ForceAttemptHTTP2: shared, ReadBufferSize: 16 << 10}
	if !shared {
		t.TLSClientConfig.NextProtos = []string{"http/1.1"}
		t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{} // no HTTP/2
	}
	return t
}

var frames = sync.Pool{New: func() any { return new([]byte) }}

// follow reads frames until the watch ends.
func (w *watches) follow(ctx context.Context, response *http.Response) {
	defer response.Body.Close()
	in, size := response.Body, make([]byte, 4)
	for {
		if _, err := io.ReadFull(in, size); err != nil {
			break
		}
		buffer := frames.Get().(*[]byte)
		n := int(binary.BigEndian.Uint32(size))
		if cap(*buffer) < n {
			*buffer = make([]byte, n)
		}
		frame := (*buffer)[:n]
		_, err := io.ReadFull(in, frame)
		if sent, ok := sentAt(frame); ok {
			w.delays.add(time.Since(sent))
		}
		frames.Put(buffer)
		if err != nil {
			break
		}
		w.events.Add(1)
	}
	if ctx.Err() == nil {
		w.ended.Add(1)
	}
}

// sentAt finds when the object of a frame was written.
func sentAt(frame []byte) (time.Time, bool) {
	_, rest, found := bytes.Cut(frame, []byte(sentMark))
	if !found || len(rest) < len("1700000000000000000") {
		return time.Time{}, false
	}
	n, err := strconv.ParseInt(string(rest[:19]), 10, 64)
	return time.Unix(0, n), err == nil
}

// await waits until so many events have come, or none for some seconds.
func (w *watches) await(ctx context.Context, events int64) {
	const quiet = 15 * time.Second
	last, since := int64(-1), time.Now()
	for w.events.Load() < events && ctx.Err() == nil {
		if n := w.events.Load(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > quiet {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (w *watches) close() {
	w.cancel()
	w.running.Wait()
	for _, c := range w.clients {
		c.CloseIdleConnections()
	}
}
