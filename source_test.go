package tarn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// entry is what a [remote] holds. Each write makes a new one, so that two states
// are the same exactly when their pointers are.
type entry struct {
	name, uid string
	version   Version
	text      string
}

// String names a state: a3 is the state of object a that was written at version 3.
func (e *entry) String() string { return e.name + string(e.version) }

// remote is a Source in memory: a collection that a test writes, with versions,
// a history to watch from, and failures on request.
//
//   - Each write takes the next version and returns it.
//   - List answers with the newest state, by name, in pages if asked; the token
//     of a page is good until compact.
//   - Watch continues from any version since the last compact and fails with
//     Expired from an older one; so does an open stream that fell behind.
//   - Any number of goroutines may use it.
type remote struct {
	mu      sync.Mutex
	now     int
	objects map[string]*entry
	// news is what happened since compact, after forgotten earlier events;
	// compacted is the oldest version to watch from.
	news      []Event[*entry]
	forgotten int
	compacted int
	// lists are the states that page tokens speak of.
	lists map[string][]*entry

	// failure answers every request, and ends every stream, while it is set.
	failure error
	// epoch counts how often streams were ended.
	epoch int
	// changed is closed when a stream may have something to say.
	changed chan struct{}
	// open counts streams that were not closed.
	open int

	// versionless makes it a source without versions, mute one that does not
	// answer. They are set at the start.
	versionless, mute bool
}

// newRemote makes a collection of the named objects, at versions from 1. An
// empty one is at version 1 too, because 0 stands for any.
func newRemote(names ...string) *remote {
	r := &remote{objects: map[string]*entry{}, lists: map[string][]*entry{}, changed: make(chan struct{})}
	for _, name := range names {
		r.put(name, "")
	}
	r.now = max(r.now, 1)
	return r
}

// put creates or updates an object.
func (r *remote) put(name, text string) Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now++
	e := &entry{name: name, version: r.version(), text: text}
	event := Event[*entry]{Type: EventAdded, Object: e}
	if before, ok := r.objects[name]; ok {
		event.Type = EventModified
		e.uid = before.uid
	} else {
		e.uid = fmt.Sprintf("%s created at %d", name, r.now)
	}
	r.objects[name] = e
	return r.tell(event)
}

// remove deletes an object that is there.
func (r *remote) remove(name string) Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now++
	last := *r.objects[name]
	last.version = r.version()
	delete(r.objects, name)
	return r.tell(Event[*entry]{Type: EventDeleted, Object: &last})
}

// bookmark sends the current version to all watches. The version is a new one, as
// if another collection of the same server had changed.
func (r *remote) bookmark() Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now++
	return r.tell(Event[*entry]{Type: EventBookmark, Version: r.version()})
}

// compact forgets the history.
func (r *remote) compact() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgotten += len(r.news)
	r.compacted = r.now
	r.news = nil
	clear(r.lists)
	r.wake()
}

// fail answers everything with err from now on; with nil it works again.
func (r *remote) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = err
	r.wake()
}

// hangUp ends the open streams in good order.
func (r *remote) hangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch++
	r.wake()
}

// state is the whole content.
func (r *remote) state() map[Key]*entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := map[Key]*entry{}
	for name, e := range r.objects {
		state[Key(name)] = e
	}
	return state
}

// version is the present one.
func (r *remote) version() Version {
	if r.versionless {
		return ""
	}
	return Version(strconv.Itoa(r.now))
}

func (r *remote) tell(e Event[*entry]) Version {
	r.news = append(r.news, e)
	r.wake()
	return r.version()
}

func (r *remote) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// reached says whether the collection has come to v, which must not be ahead.
func (r *remote) reached(v Version) (int, error) {
	if v == Latest || v == Any {
		return r.now, nil
	}
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return 0, err
	}
	if n > r.now {
		return 0, Because(ReasonTooNew, 0, fmt.Errorf("version %d is ahead of %d", n, r.now))
	}
	return n, nil
}

func (r *remote) List(ctx context.Context, q ListQuery) (Page[*entry], error) {
	if r.mute {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return Page[*entry]{}, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return Page[*entry]{}, r.failure
	}
	if q.Continue != "" {
		return r.page(q.Continue, q.Limit)
	}
	if _, err := r.reached(q.AtLeast); err != nil {
		return Page[*entry]{}, err
	}
	token := strconv.Itoa(r.now)
	r.lists[token] = r.sorted()
	return r.page(token+"/0", q.Limit)
}

// page gives the page that a token stands for: "version/offset".
func (r *remote) page(token string, limit int64) (Page[*entry], error) {
	at, offset, _ := strings.Cut(token, "/")
	list, ok := r.lists[at]
	if !ok {
		return Page[*entry]{}, Because(ReasonExpired, 0, errors.New("the page token has expired"))
	}
	n, err := strconv.Atoi(offset)
	if err != nil {
		return Page[*entry]{}, err
	}
	page := Page[*entry]{Items: list[n:], Version: Version(at)}
	if r.versionless {
		page.Version = ""
	}
	if limit > 0 && int64(len(page.Items)) > limit {
		page.Items = page.Items[:limit]
		page.Continue = fmt.Sprintf("%s/%d", at, n+int(limit))
	}
	return page, nil
}

func (r *remote) sorted() []*entry {
	var all []*entry
	for _, name := range slices.Sorted(maps.Keys(r.objects)) {
		all = append(all, r.objects[name])
	}
	return all
}

func (r *remote) Watch(ctx context.Context, q WatchQuery) (Stream[*entry], error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return nil, r.failure
	}
	from, err := r.reached(q.From)
	if err != nil {
		return nil, err
	}
	s := &remoteStream{remote: r, epoch: r.epoch, next: r.forgotten + len(r.news)}
	switch {
	case q.Initial || !r.versionless && (q.From == Latest || q.From == Any):
		for _, e := range r.sorted() {
			s.first = append(s.first, Event[*entry]{Type: EventAdded, Object: e})
		}
		if q.Initial {
			s.first = append(s.first, Event[*entry]{Type: EventBookmark, Version: r.version(), InitialEnd: true})
		}
	case from < r.compacted:
		return nil, Because(ReasonExpired, 0, fmt.Errorf("version %d has been compacted", from))
	case !r.versionless:
		for s.next > r.forgotten && versionOf(r.news[s.next-r.forgotten-1]) > from {
			s.next--
		}
	}
	r.open++
	return s, nil
}

// versionOf is the number that an event brings a versioned collection to.
func versionOf(e Event[*entry]) int {
	v := e.Version
	if e.Type != EventBookmark {
		v = e.Object.version
	}
	n, _ := strconv.Atoi(string(v))
	return n
}

func (r *remote) Describe(e *entry) (Meta, error) {
	if e == nil || e.name == "" {
		return Meta{}, errors.New("an object without a name")
	}
	return Meta{Key: Key(e.name), Version: e.version, UID: e.uid}, nil
}

// remoteStream reads a remote's history.
type remoteStream struct {
	remote *remote
	epoch  int
	// first comes before the history, next is the place in that.
	first  []Event[*entry]
	next   int
	closed bool
}

func (s *remoteStream) Next(ctx context.Context, buf []Event[*entry]) (int, error) {
	for {
		n, changed, err := s.read(buf)
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// read takes what is at hand, or says on what to wait.
func (s *remoteStream) read(buf []Event[*entry]) (int, <-chan struct{}, error) {
	r := s.remote
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.failure != nil:
		return 0, nil, r.failure
	case len(s.first) > 0:
		n := copy(buf, s.first)
		s.first = s.first[n:]
		return n, nil, nil
	case s.next < r.forgotten:
		return 0, nil, Because(ReasonExpired, 0, errors.New("the watch fell behind"))
	}
	n := copy(buf, r.news[s.next-r.forgotten:])
	if n == 0 && s.epoch < r.epoch {
		return 0, nil, io.EOF
	}
	s.next += n
	return n, r.changed, nil
}

func (s *remoteStream) Close() {
	s.remote.mu.Lock()
	defer s.remote.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.remote.open--
	}
}
