package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/usercall"
	"github.com/tarnproject/tarn/kube/wire"
)

// stream is a watch. One goroutine reads it and cuts it into frames, as far ahead
// as the inbox allows; Next decodes the queued frames, with several goroutines if
// there are many.
//
// Why decode in Next and not ahead: a reader that keeps up gains nothing from it,
// and one that falls behind finds a batch, which is decoded in parallel. Frames
// that nobody has read yet cost their bytes, not objects.
type stream[T any] struct {
	source *Source[T]
	media  media
	held   wire.Held
	inbox  *inbox
	life   context.Context
	cancel context.CancelFunc
	body   io.Closer
	done   chan struct{}
	closed sync.Once

	// frames are the frames being decoded.
	frames []frame
	// end is the error that ends the stream, once it is reached.
	end error
}

func (s *Source[T]) newStream(life context.Context, cancel context.CancelFunc, resp *response, q tarn.WatchQuery) *stream[T] {
	st := &stream[T]{
		source: s,
		media:  resp.media,
		held:   heldBy(q.Held),
		inbox:  newInbox(),
		life:   life,
		cancel: cancel,
		body:   resp.body,
		done:   make(chan struct{}),
	}
	go func() {
		defer close(st.done)
		reader := frameReader{media: resp.media, limit: s.maxItem, initial: q.Initial, shard: newStreamFilter(resp.filter, q)}
		s.readStream(life, resp, reader, st.inbox)
	}()
	return st
}

// readStream fills the inbox to the end of the stream. A panic of the program's transport ends the
// stream with an error, or ends the process, as utilruntime is configured: client-go's watches
// do so too.
func (s *Source[T]) readStream(life context.Context, resp *response, reader frameReader, inbox *inbox) {
	var end error
	broken := errors.New("the transport ended its goroutine") // as t.Fatal does
	defer func() {
		if broken != nil {
			end = tarn.Because(tarn.ReasonLost, 0, fmt.Errorf("the watch of %s: %w", s.collection, broken))
		}
		inbox.finish(end)
	}()
	defer usercall.Recover(life, "transport", &broken)
	end = s.readFrames(life, resp, reader, inbox)
	broken = nil
}

// readFrames fills the inbox and returns how the stream ended.
func (s *Source[T]) readFrames(life context.Context, resp *response, reader frameReader, inbox *inbox) error {
	f := newBodyBuffer(resp.body, firstBlock)
	defer f.close()
	err := inbox.read(f, reader, life.Done())
	switch {
	case life.Err() != nil:
		return context.Cause(life)
	case err == io.EOF, isTimeout(err):
		// The config may limit the time of every request: then a watch ends
		// normally.
		return io.EOF
	default:
		return s.bodyFailed(life, "watch", f, err)
	}
}

// Next waits for an event and returns it with all others that have arrived.
func (s *stream[T]) Next(ctx context.Context, buf []tarn.Event[T]) (int, error) {
	for s.end == nil && len(buf) > 0 {
		frames, end := s.inbox.take(s.frames[:0], len(buf))
		s.frames = frames
		if len(frames) > 0 {
			if n := s.decode(buf); n > 0 {
				return n, nil
			}
			continue
		}
		if end != nil {
			s.end = end
			break
		}
		select {
		case <-s.inbox.readable:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return 0, s.end
}

// decode makes events of the frames, and returns how many. An error event of the
// server ends the stream.
func (s *stream[T]) decode(buf []tarn.Event[T]) int {
	bytes := 0
	for _, f := range s.frames {
		bytes += len(f.raw)
	}
	s.source.decoded.add(len(s.frames), bytes, 0)
	var next atomic.Int64
	work := func() {
		began := time.Now()
		defer func() { s.source.decoded.add(0, 0, time.Since(began)) }()
		for {
			i := int(next.Add(1)) - 1
			if i >= len(s.frames) {
				return
			}
			buf[i] = s.source.event(s.media, s.frames[i], s.held)
		}
	}
	var helpers sync.WaitGroup
	if bytes >= parallelBytes {
		// One core reads the stream meanwhile. On two cores, parallel decoding cost
		// a twentieth more CPU and saved no time.
		for range min(workers()-1, len(s.frames)) - 1 {
			helpers.Go(work)
		}
	}
	work()
	helpers.Wait()
	n := len(s.frames)
	for i := range s.frames {
		s.frames[i].release()
		if buf[i].Type == streamError && n == len(s.frames) {
			n, s.end = i, buf[i].Bad.Err
		}
	}
	clear(buf[n:len(s.frames)])
	clear(s.frames)
	return n
}

// Close ends the request and waits for its reader, but not for long if the transport ignores
// that.
func (s *stream[T]) Close() {
	s.closed.Do(func() {
		s.cancel()
		closeBody(s.life, s.body)
		usercall.Wait(s.life, s.done)
	})
}
