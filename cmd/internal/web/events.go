package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

const (
	// beat is how often a stream checks for changes.
	beat = 200 * time.Millisecond
	// clientPatience is how long a client may stop reading before it is dropped.
	clientPatience = 10 * time.Second
)

// events answers /api/events with a stream of server-sent events.
//
// A stream never queues anything: at each beat it compares the newest state with
// what it last sent, and sends the difference. So a client that reads slowly gets
// fewer events, not old ones, and costs one object and two channels; one that does
// not read at all is dropped.
func (s *Site) events(w http.ResponseWriter, r *http.Request) {
	f, problem := s.newFeed(r)
	if problem != nil {
		fail(w, problem)
		return
	}
	leave, problem := s.streams.enter(s.guard.client(r))
	if problem != nil {
		w.Header().Set("Retry-After", "5")
		fail(w, problem)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return
	}
	f.out = sink{w, http.NewResponseController(w)}
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for s.guard.stillAuthenticated(r) && f.step(r.Context(), time.Now()) == nil {
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

// eventFeed is the event stream of one client.
type eventFeed struct {
	site    *Site
	out     sink
	pulsed  time.Time
	table   *tableWatch
	object  *objectWatch
	related time.Time
}

func (s *Site) newFeed(r *http.Request) (*eventFeed, *failure) {
	f := &eventFeed{site: s}
	values := r.URL.Query()
	if name := values.Get("table"); name != "" {
		table, problem := s.table(name)
		if problem != nil {
			return nil, problem
		}
		f.table = &tableWatch{table: table}
	}
	if text := values.Get("object"); text != "" {
		name, key, ok := strings.Cut(text, "/")
		if !ok {
			return nil, &failure{http.StatusBadRequest, "object=" + text + ": a table and a key are wanted, as in pods/default/web-1"}
		}
		table, problem := s.table(name)
		if problem != nil {
			return nil, problem
		}
		f.object = &objectWatch{site: s, table: table, key: tarn.Key(key)}
	}
	return f, nil
}

const (
	tableInterval   = 500 * time.Millisecond
	relatedInterval = 2 * time.Second
)

// step sends what is new. An error means that the client is gone.
func (f *eventFeed) step(ctx context.Context, now time.Time) error {
	if now.Sub(f.pulsed) >= pulseInterval-beat/2 {
		f.pulsed = now
		if err := f.out.send("overview", f.site.pulse.get(f.site.overview)); err != nil {
			return err
		}
	}
	if f.table != nil {
		if state, ok := f.table.next(ctx, now); ok {
			if err := f.out.send("table", encodeJSON(state)); err != nil {
				return err
			}
		}
	}
	if f.object == nil {
		return nil
	}
	if state, ok := f.object.next(ctx); ok {
		if err := f.out.send("object", encodeJSON(state)); err != nil {
			return err
		}
		f.related = time.Time{}
	}
	if now.Sub(f.related) >= relatedInterval {
		f.related = now
		if text, ok := f.object.around(); ok {
			return f.out.send("related", text)
		}
	}
	return nil
}

// tableWatch detects that a table changed. The page asks what changed: it knows which rows it
// shows.
type tableWatch struct {
	table   *mirror.Table
	changed <-chan struct{}
	told    time.Time
}

type tableState struct {
	Table   string       `json:"table"`
	Version tarn.Version `json:"version"`
	Objects int          `json:"objects"`
}

func (w *tableWatch) next(ctx context.Context, now time.Time) (tableState, bool) {
	if w.changed != nil && (now.Sub(w.told) < tableInterval || !closed(w.changed)) {
		return tableState{}, false
	}
	_, w.changed = w.table.Store().AllWatch(ctx)
	w.told = now
	return tableState{w.table.Resource().Name(), w.table.Store().Version(), w.table.Store().Len()}, true
}

// sink writes events to a client.
type sink struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// send writes one event at once. data has no line breaks: it is JSON.
func (s sink) send(name, data string) error {
	err := s.control.SetWriteDeadline(time.Now().Add(clientPatience))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, data); err != nil {
		return err
	}
	return s.control.Flush()
}
