package relay

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// shardQuery selects one half of the objects.
func shardQuery(half uint64) string { return "shardSelector=" + url.QueryEscape(shardOf(half, 2)) }

// begin gives a server an empty state, with a directory if it has one.
func (m *model) begin(s *modelServer, durable bool) (kept tarn.Kept) {
	logger := slog.New(slog.DiscardHandler)
	s.state = &state{
		name: "pods", bytes: 2000, age: time.Hour, maxWait: time.Millisecond, logger: logger,
		latest: func(context.Context, *state, bool) error { return nil },
	}
	s.reader = apiserver.NewReader(m.resource, s.state, apiserver.ReaderOptions{BookmarkInterval: time.Hour})
	if !durable {
		return kept
	}
	if m.dir == "" {
		var err error
		if m.dir, err = os.MkdirTemp("", "model"); err != nil {
			m.fatalf("%v", err)
		}
	}
	dir := filepath.Join(m.dir, strconv.Itoa(s.number))
	s.durable = &durableState{state: s.state, open: func() (*journal, restored, error) {
		return openJournal(dir, m.resource, journalBounds{bytes: 1 << 30, age: 24 * time.Hour}, logger)
	}}
	kept, err := s.durable.Open(context.Background(), nil)
	if err != nil || s.journal == nil {
		m.fatalf("%v, %v", err, s.journalErr)
	}
	return kept
}

// kill ends a relay at any point. It starts with what is in its directory, or reads its
// source.
func (m *model) kill(s *modelServer) {
	for _, c := range m.clients {
		if c.at == s {
			c.cut()
		}
	}
	if s.journal != nil {
		s.journal.close()
	}
	kept := m.begin(s, s.durable != nil)
	if s.synced {
		s.read = versionOf(kept.Version())
		return
	}
	m.read(s)
}

// listExact asks a relay for all versions that there were. Those that it knows are what the
// origin had.
func (m *model) listExact(s *modelServer) {
	for version, want := range m.states {
		listing, err := s.List(context.Background(), "", apiserver.At{Match: apiserver.Exact, Version: version})
		if err != nil {
			continue
		}
		if got := contentText(&state{content: content{objects: listing.Objects}}); got != want {
			m.fatalf("relay %d at %d has %q at version %d, the origin had %q", s.number, s.version, got, version, want)
		}
	}
}

// read lets a relay begin with the content of its source.
func (m *model) read(s *modelServer) {
	b := tarn.Batch[Object]{Whole: true}
	for _, o := range s.source.content.objects {
		b.Changes = append(b.Changes, tarn.Change[Object]{Type: tarn.Add, Key: tarn.Key(o.Key()), Object: o, Version: text(o)})
	}
	m.commit(s, b, s.source.version)
	s.read = s.source.version
}

// rewind takes the origin back to a state without some of its objects, and all relays find out.
// Watches that are open then are notified; a client without one has to find out by itself.
func (m *model) rewind() {
	m.rewinds++
	origin := m.servers[0]
	back := m.version - int64(1+m.choose(10))
	b := tarn.Batch[Object]{Whole: true, Gaps: []tarn.Gap{{From: tarn.Version(fmt.Sprint(m.version)), To: tarn.Version(fmt.Sprint(back)), Cause: tarn.GapRewound}}}
	for _, o := range origin.content.objects {
		if o.Version() <= back && m.choose(2) == 0 {
			b.Changes = append(b.Changes, tarn.Change[Object]{Type: tarn.Add, Key: tarn.Key(o.Key()), Object: o, Version: text(o)})
		}
	}
	m.version, m.states = back, map[int64]string{}
	m.commit(origin, b, m.version)
	for _, s := range m.servers[1:] {
		m.read(s)
	}
	for _, c := range m.clients {
		c.rewound = true
		if c.stream == nil {
			c.forget()
		}
	}
}

// forget has a client list again. What it was sent before a rewind was of another time.
func (c *modelClient) forget() {
	c.view = nil
	if c.rewound {
		c.version, c.newest, c.rewound = 0, map[string]int64{}, false
	}
}
