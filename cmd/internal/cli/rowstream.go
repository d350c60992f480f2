package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/reasons"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
)

// rowStream is a watch of tables. One goroutine reads it, a few events ahead.
type rowStream struct {
	source *rowSource
	events chan tarn.Event[*row]
	// end is the error after the last event, once events is closed.
	end    error
	cancel context.CancelFunc
}

func newRowStream(source *rowSource, life context.Context, cancel context.CancelFunc, body io.ReadCloser) *rowStream {
	s := &rowStream{source: source, events: make(chan tarn.Event[*row], 64), cancel: cancel}
	go func() {
		defer close(s.events)
		defer body.Close()
		s.end = s.read(life, body)
	}()
	return s
}

func (s *rowStream) read(life context.Context, body io.Reader) error {
	decoder := json.NewDecoder(body)
	for {
		var event metav1.WatchEvent
		if err := decoder.Decode(&event); err != nil {
			switch {
			case life.Err() != nil:
				return context.Cause(life)
			case err == io.EOF, errors.Is(err, context.DeadlineExceeded):
				return io.EOF
			}
			return tarn.Because(tarn.ReasonLost, 0, fmt.Errorf("the watch of %s broke off: %w", s.source.place.resource.Name(), err))
		}
		if event.Type == string(watch.Error) {
			return s.refused(event.Object.Raw)
		}
		table, err := parseTable(event.Object.Raw)
		if err != nil {
			return err
		}
		s.source.learn(table)
		for _, r := range table.Rows {
			select {
			case s.events <- eventOf(event.Type, rowOf(r)):
			case <-life.Done():
				return context.Cause(life)
			}
		}
	}
}

// refused returns the error by which a server ended a watch.
func (s *rowStream) refused(raw []byte) error {
	var status metav1.Status
	if err := json.Unmarshal(raw, &status); err != nil {
		return fmt.Errorf("the watch of %s ended with an error that cannot be read: %w", s.source.place.resource.Name(), err)
	}
	return reasons.Classify(fmt.Errorf("the watch of %s ended: %w", s.source.place.resource.Name(), apierrors.FromObject(&status)), isLost)
}

func eventOf(kind string, r *row) tarn.Event[*row] {
	event := tarn.Event[*row]{Object: r}
	switch watch.EventType(kind) {
	case watch.Added:
		event.Type = tarn.EventAdded
	case watch.Modified:
		event.Type = tarn.EventModified
	case watch.Deleted:
		event.Type = tarn.EventDeleted
	case watch.Bookmark:
		event = tarn.Event[*row]{Type: tarn.EventBookmark, Version: r.meta.Version}
	default:
		event.Type = tarn.EventUndecodable
		event.Bad = tarn.BadObject{Key: r.meta.Key, Err: fmt.Errorf("an event of type %q is not known", kind)}
	}
	return event
}

// Next waits for an event and returns it with all others that have arrived.
func (s *rowStream) Next(ctx context.Context, buf []tarn.Event[*row]) (int, error) {
	if len(buf) == 0 {
		return 0, nil
	}
	select {
	case event, ok := <-s.events:
		if !ok {
			return 0, s.end
		}
		buf[0] = event
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	for n := 1; n < len(buf); n++ {
		select {
		case event, ok := <-s.events:
			if !ok {
				return n, nil
			}
			buf[n] = event
		default:
			return n, nil
		}
	}
	return len(buf), nil
}

// Close releases the stream.
func (s *rowStream) Close() {
	s.cancel()
	for range s.events { // until the reader has ended
	}
}

// isLost reports whether the error is a broken connection.
func isLost(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err))
}
