package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/internal/testsize"
)

// TestGapsModel runs an origin, two relays of it, a relay of one of these and a relay of
// that, with gaps, rewinds and kills, after which a relay starts from its directory or with
// nothing; and clients with selectors and shards that are cut off at every point and resume
// anywhere.
//
//   - No client is ever sent an older state of an object than it had.
//   - When everything is quiet, every client's view is what the origin has.
//   - A list at an exact version is what the origin had at that version, or refused.
//
// Servers are states behind the HTTP side that clients see.
//
// go test ./relay -run GapsModel -days 100000 -day 1 runs more, from a day on.
func TestGapsModel(t *testing.T) {
	for day := *firstDay; day < *firstDay+uint64(days()); day++ {
		var failure error
		synctest.Test(t, func(*testing.T) { failure = runModel(day) })
		if failure != nil {
			t.Fatalf("day %d: %v", day, failure)
		}
	}
}

var (
	days     = testsize.Flag("days", 300, 40, "how many days of the model to run")
	firstDay = flag.Uint64("day", 1, "the first of them")
)

func runModel(day uint64) (failure error) {
	m := newModel(rand.New(rand.NewPCG(day, 1)))
	defer m.close()
	defer func() {
		if v := recover(); v != nil {
			problem, ok := v.(modelFailure)
			if !ok {
				panic(v)
			}
			failure = errors.New(string(problem))
		}
	}()
	for range 20 + m.choose(100) {
		m.step()
		time.Sleep(time.Duration(m.choose(3)) * time.Second)
	}
	m.quiet()
	return nil
}

type modelFailure string

func (m *model) fatalf(format string, args ...any) { panic(modelFailure(fmt.Sprintf(format, args...))) }

func (m *model) choose(n int) int { return m.random.IntN(n) }

type model struct {
	random   *rand.Rand
	version  int64
	uids     int
	servers  []*modelServer // the origin first
	clients  []*modelClient
	resource *apiserver.Resource
	// dir has the directories of relays, rewinds counts how often the origin went back.
	dir     string
	rewinds int
	// states are the contents of the origin by version, since it last went back.
	states map[int64]string
}

// modelServer is the origin, or a relay that follows an earlier one.
type modelServer struct {
	*state
	reader *apiserver.Reader
	source *modelServer
	// read is the version up to which it has followed its source.
	read int64
	// durable is set if it has a directory.
	durable *durableState
	number  int
}

func newModel(random *rand.Rand) *model {
	resource, _ := apiserver.BuiltinResource(pods)
	m := &model{random: random, version: 100, resource: resource, states: map[int64]string{}}
	for number, source := range []int{-1, 0, 0, 1, 3} {
		s := &modelServer{number: number}
		if source >= 0 {
			s.source = m.servers[source]
		}
		m.begin(s, source >= 0 && m.choose(3) == 0)
		m.commit(s, tarn.Batch[Object]{Whole: true}, m.version)
		s.read = m.version
		m.servers = append(m.servers, s)
	}
	for _, selector := range []string{"", "labelSelector=l%3Da", "fieldSelector=spec.nodeName%3Da", "labelSelector=l%21%3Da", shardQuery(0), shardQuery(1)} {
		m.clients = append(m.clients, &modelClient{m: m, selector: selector, bookmarks: m.choose(2) == 0, newest: map[string]int64{}})
	}
	return m
}

func (m *model) commit(s *modelServer, b tarn.Batch[Object], version int64) {
	b.Positions = []tarn.Position{{Version: tarn.Version(strconv.FormatInt(version, 10)), Complete: true, Epoch: fmt.Sprint(m.rewinds)}}
	b.LastContact = time.Now()
	if err := s.Commit(context.Background(), b); err != nil {
		m.fatalf("%v", err)
	}
	if s.source == nil {
		m.states[version] = contentText(s.state)
	}
}

func (m *model) step() {
	switch n := m.choose(40); {
	case n == 39:
		m.rewind()
	case n >= 37:
		m.kill(m.relay())
	case n >= 35:
		m.listExact(m.relay())
	default:
		m.usualStep(n % 10)
	}
	synctest.Wait()
}

func (m *model) relay() *modelServer { return m.servers[1+m.choose(len(m.servers)-1)] }

func (m *model) usualStep(n int) {
	switch n {
	case 0, 1, 2:
		m.write()
	case 3:
		m.version++ // of another resource
		m.commit(m.servers[0], tarn.Batch[Object]{}, m.version)
	case 4, 5:
		m.follow(m.relay())
	case 6:
		m.gap(m.relay())
	default:
		m.clients[m.choose(len(m.clients))].step()
	}
}

// write changes one of a few objects at the origin.
func (m *model) write() {
	origin := m.servers[0]
	name := []string{"x", "y", "z"}[m.choose(3)]
	old := origin.content.get("default/" + name)
	m.version++
	if old != nil && m.choose(3) == 0 {
		last := m.object(name, old.UID(), old.Labels()["l"])
		m.commit(origin, tarn.Batch[Object]{Changes: []tarn.Change[Object]{{Type: tarn.Delete, Key: tarn.Key(old.Key()), Object: last, Version: text(last)}}}, m.version)
		return
	}
	uid, kind := "", tarn.Update
	if old != nil {
		uid = old.UID()
	} else {
		m.uids++
		uid, kind = fmt.Sprintf("uid-%d-%x", m.uids, m.random.Uint64()), tarn.Add // its hash is in either half
	}
	o := m.object(name, uid, []string{"a", "b"}[m.choose(2)])
	m.commit(origin, tarn.Batch[Object]{Changes: []tarn.Change[Object]{{Type: kind, Key: tarn.Key(o.Key()), Object: o, Version: text(o)}}}, m.version)
}

func text(o Object) tarn.Version { return tarn.Version(strconv.FormatInt(o.Version(), 10)) }

func (m *model) object(name, uid, label string) Object {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid), ResourceVersion: fmt.Sprint(m.version), Labels: map[string]string{"l": label}},
		Spec:       corev1.PodSpec{NodeName: label},
	}
	raw, err := p.Marshal()
	if err != nil {
		m.fatalf("%v", err)
	}
	o, err := m.resource.NewObject(raw)
	if err != nil {
		m.fatalf("%v", err)
	}
	return o
}

// events returns what a relay that watches its source is sent, as changes; false if the
// watch ends because of a gap.
func (s *modelServer) events() ([]tarn.Change[Object], int64, bool) {
	place, ok := s.source.log.since(s.read)
	if !ok || s.read > s.source.version {
		return nil, 0, s.read > s.source.version
	}
	events, _ := s.source.log.after(place)
	var changes []tarn.Change[Object]
	version := s.source.version
	for _, e := range events {
		if e.Gap != nil {
			return changes, s.read, false
		}
		c := tarn.Change[Object]{Type: tarn.Update, Key: tarn.Key(e.Object.Key()), Object: e.Object, Version: text(e.Object)}
		if e.Type == "DELETED" {
			c.Type = tarn.Delete
		}
		changes = append(changes, c)
	}
	return changes, version, true
}

// follow gives a relay some of the events that it has not seen.
func (m *model) follow(s *modelServer) {
	changes, version, ok := s.events()
	if !ok {
		m.gap(s)
		return
	}
	if n := len(changes) - m.choose(len(changes)+1); n < len(changes) {
		if n == 0 {
			return
		}
		changes, version = changes[:n], versionOf(changes[n-1].Version)
	}
	version = max(version, s.read)
	m.commit(s, tarn.Batch[Object]{Changes: changes}, version)
	s.read = version
}

// gap makes a relay read its source again. Some events may be in the same batch before it.
func (m *model) gap(s *modelServer) {
	if s.source.version < s.read {
		return // the source is behind: the read is refused
	}
	var b tarn.Batch[Object]
	from := s.read
	held := map[string]Object{}
	for _, o := range s.content.objects {
		held[o.Key()] = o
	}
	if changes, _, ok := s.events(); ok {
		b.Changes = slices.Clone(changes[:m.choose(len(changes)+1)])
	}
	for _, c := range b.Changes {
		from = versionOf(c.Version)
		held[string(c.Key)] = c.Object
		if c.Type == tarn.Delete {
			delete(held, string(c.Key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(held)) {
		if s.source.content.get(key) == nil {
			b.Changes = append(b.Changes, tarn.Change[Object]{Type: tarn.Delete, Missed: true, Key: tarn.Key(key), Object: held[key], Version: text(held[key])})
		}
	}
	for _, o := range s.source.content.objects {
		if was := held[o.Key()]; was == nil || was.Version() != o.Version() {
			b.Changes = append(b.Changes, tarn.Change[Object]{Type: tarn.Update, Key: tarn.Key(o.Key()), Object: o, Version: text(o)})
		}
	}
	to := s.source.version
	if from != to {
		b.Gaps = []tarn.Gap{{From: tarn.Version(fmt.Sprint(from)), To: tarn.Version(fmt.Sprint(to)), Cause: tarn.GapRead}}
	}
	m.commit(s, b, to)
	s.read = to
}

// quiet has everybody catch up, and compares.
func (m *model) quiet() {
	for _, s := range m.servers[1:] {
		for s.read < m.version {
			if m.choose(2) == 1 {
				m.gap(s)
			} else {
				m.follow(s)
			}
		}
	}
	for _, c := range m.clients {
		for range 5 {
			c.step()
			synctest.Wait()
		}
		c.settle()
	}
}

func (m *model) close() {
	for _, c := range m.clients {
		c.cut()
	}
	synctest.Wait()
	for _, s := range m.servers {
		if s.journal != nil {
			s.journal.close()
		}
	}
	if m.dir != "" {
		_ = os.RemoveAll(m.dir)
	}
}

// modelClient is an informer: it keeps a view, and the version that it has come to.
type modelClient struct {
	m         *model
	selector  string
	bookmarks bool

	view    map[string]string // key: uid@version
	version int64
	// newest is the newest state that it was sent of each object. Deletes do not count:
	// one that was found across a gap has the version before the gap, and a client that
	// resumes there may see the object once more, until its real delete.
	newest map[string]int64
	stream *modelStream
	// at is the server of the stream. rewound says that the origin has gone back since the
	// client last listed.
	at      *modelServer
	rewound bool
}

// step connects, or reads some events and perhaps is cut off.
func (c *modelClient) step() {
	server := c.m.servers[c.m.choose(len(c.m.servers))]
	switch {
	case c.view == nil:
		c.list(server)
	case c.stream == nil:
		c.connect(server)
	default:
		lines := c.stream.take()
		n := c.m.choose(len(lines) + 1)
		c.read(lines[:n])
		if c.stream != nil && c.stream.ended() || n < len(lines) || c.m.choose(4) == 0 {
			c.cut()
		}
	}
}

func (c *modelClient) list(server *modelServer) {
	at := apiserver.At{Match: apiserver.NotOlder, Version: c.version}
	listing, err := server.List(context.Background(), "", at)
	if err != nil {
		if c.version <= server.version {
			c.m.fatalf("list at %d of a server at %d: %v", c.version, server.version, err)
		}
		return // that server is behind
	}
	c.view, c.version = map[string]string{}, listing.Version
	for _, o := range listing.Objects {
		if c.selects(o) {
			c.set(o.Key(), o.UID(), o.Version())
		}
	}
}

func (c *modelClient) selects(o Object) bool {
	switch c.selector {
	case "":
		return true
	case shardQuery(0), shardQuery(1):
		return strconv.FormatUint(o.ShardHash(apiserver.ShardByUID)>>63, 10) == map[string]string{shardQuery(0): "0", shardQuery(1): "1"}[c.selector]
	case "labelSelector=l%21%3Da":
		return o.Labels()["l"] != "a"
	}
	return o.Labels()["l"] == "a"
}

func (c *modelClient) set(key, uid string, version int64) {
	if version < c.newest[key] {
		c.m.fatalf("a client with %q was sent %s at %d after %d", c.selector, key, version, c.newest[key])
	}
	c.newest[key] = version
	c.view[key] = fmt.Sprint(uid, "@", version)
}

func (c *modelClient) connect(server *modelServer) {
	query := fmt.Sprintf("watch=1&resourceVersion=%d&allowWatchBookmarks=%v&%s", c.version, c.bookmarks, c.selector)
	c.stream, c.at = newModelStream(server.reader, query), server
}

func (c *modelClient) cut() {
	if c.stream != nil {
		c.stream.cancel()
		<-c.stream.done
		c.stream = nil
		if c.rewound {
			c.forget() // it was not told any more
		}
	}
}

type modelEvent struct {
	Type   string
	Object struct {
		Code     int
		Metadata metav1.ObjectMeta
	}
}

func (c *modelClient) read(lines [][]byte) {
	for _, line := range lines {
		var e modelEvent
		if err := json.Unmarshal(line, &e); err != nil {
			c.m.fatalf("%s: %v", line, err)
		}
		if e.Type == "ERROR" {
			if e.Object.Code != http.StatusGone {
				c.m.fatalf("%s", line)
			}
			c.cut()
			c.forget()
			return
		}
		version := versionOf(tarn.Version(e.Object.Metadata.ResourceVersion))
		if version < c.version {
			c.m.fatalf("a client with %q at %d was sent %s", c.selector, c.version, line)
		}
		c.version = version
		key := e.Object.Metadata.Namespace + "/" + e.Object.Metadata.Name
		switch e.Type {
		case "ADDED", "MODIFIED":
			c.set(key, string(e.Object.Metadata.UID), version)
		case "DELETED":
			delete(c.view, key)
		}
	}
}

// settle reads everything, and compares the view with the origin.
func (c *modelClient) settle() {
	for range 5 {
		if c.view == nil {
			c.list(c.m.servers[0])
		}
		if c.stream == nil {
			c.connect(c.m.servers[c.m.choose(len(c.m.servers))])
		}
		synctest.Wait()
		c.read(c.stream.take())
		if c.stream != nil && c.stream.ended() {
			c.cut()
		}
	}
	want := map[string]string{}
	for _, o := range c.m.servers[0].content.objects {
		if c.selects(o) {
			want[o.Key()] = fmt.Sprint(o.UID(), "@", o.Version())
		}
	}
	if !maps.Equal(c.view, want) {
		c.m.fatalf("a client with %q has %v, the origin %v", c.selector, c.view, want)
	}
}

// modelStream is the answer to a watch, line by line.
type modelStream struct {
	cancel context.CancelFunc
	done   chan struct{}
	header http.Header

	mu   sync.Mutex
	sent []byte
}

func newModelStream(reader *apiserver.Reader, query string) *modelStream {
	ctx, cancel := context.WithCancel(context.Background())
	s := &modelStream{cancel: cancel, done: make(chan struct{}), header: http.Header{}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/pods?"+query, nil)
	if err != nil {
		panic(err)
	}
	go func() {
		defer close(s.done)
		if err := reader.Serve(s, request, apiserver.Target{Resource: pods}); err != nil && !errors.Is(err, context.Canceled) {
			panic(err)
		}
	}()
	return s
}

// ended says that the server has closed the watch.
func (s *modelStream) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (s *modelStream) Header() http.Header { return s.header }
func (s *modelStream) WriteHeader(int)     {}
func (s *modelStream) Flush()              {}

func (s *modelStream) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, data...)
	return len(data), nil
}

func (s *modelStream) take() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := bytes.SplitAfter(s.sent, []byte("\n"))
	s.sent = nil
	return slices.DeleteFunc(lines, func(line []byte) bool { return len(line) == 0 })
}
