package tarn_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// Lake is what our collection holds.
type Lake struct {
	Name    string
	Level   int
	Version int
}

// Lakes is a source: a collection that can be read whole at a version and
// followed from a version. A real one would speak some protocol to a server.
type Lakes struct {
	mu     sync.Mutex
	now    map[string]Lake
	events []tarn.Event[Lake] // the first brought version 1, and so on
	more   chan struct{}      // closed with the next event
}

// Set writes a lake and returns the version of that write.
func (l *Lakes) Set(name string, level int) tarn.Version {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := tarn.EventModified
	if _, known := l.now[name]; !known {
		kind = tarn.EventAdded
	}
	lake := Lake{name, level, len(l.events) + 1}
	l.now[name] = lake
	l.events = append(l.events, tarn.Event[Lake]{Type: kind, Object: lake})
	close(l.more)
	l.more = make(chan struct{})
	return version(lake.Version)
}

func version(n int) tarn.Version { return tarn.Version(strconv.Itoa(n)) }

// List reads the collection, all in one page.
func (l *Lakes) List(context.Context, tarn.ListQuery) (tarn.Page[Lake], error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	page := tarn.Page[Lake]{Version: version(len(l.events))}
	for _, lake := range l.now {
		page.Items = append(page.Items, lake)
	}
	return page, nil
}

// Watch follows the collection.
func (l *Lakes) Watch(_ context.Context, q tarn.WatchQuery) (tarn.Stream[Lake], error) {
	from, err := strconv.Atoi(string(q.From))
	return &stream{l, from}, err
}

// Describe tells the engine which object it has before it.
func (l *Lakes) Describe(lake Lake) (tarn.Meta, error) {
	return tarn.Meta{Key: tarn.Key(lake.Name), Version: version(lake.Version)}, nil
}

type stream struct {
	lakes *Lakes
	next  int
}

func (s *stream) Next(ctx context.Context, buf []tarn.Event[Lake]) (int, error) {
	for {
		s.lakes.mu.Lock()
		n := copy(buf, s.lakes.events[s.next:])
		more := s.lakes.more
		s.lakes.mu.Unlock()
		if n > 0 {
			s.next += n
			return n, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (s *stream) Close() {}

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	source := &Lakes{now: map[string]Lake{}, more: make(chan struct{})}
	source.Set("upper tarn", 12)

	lakes, err := tarn.NewReplica(source, memory.New[Lake](), tarn.Options[Lake]{Name: "lakes"})
	if err != nil {
		fmt.Println(err)
		return
	}
	go lakes.Run(ctx)
	if err := lakes.WaitSynced(ctx); err != nil {
		fmt.Println(err) // says why: refused, forbidden …
		return
	}
	for key, lake := range lakes.All() { // one state of the whole collection
		fmt.Println(key, "is at", lake.Level)
	}

	written := source.Set("upper tarn", 15)
	if err := lakes.WaitFor(ctx, written); err != nil { // read your own write
		fmt.Println(err)
		return
	}
	lake, found := lakes.Get("upper tarn")
	fmt.Println(lake.Name, "rose to", lake.Level, found)

	h := lakes.Health()
	fmt.Println(h.Name, h.State, "at version", h.Version, "trouble:", h.Err)
	// Output:
	// upper tarn is at 12
	// upper tarn rose to 15 true
	// lakes watching at version 2 trouble: <nil>
}
