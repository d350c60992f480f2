package tarn_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// A story is a test of the reflector as text. Its server section is a list of
// requests, in the order in which they must come, each with the answer to it:
//
//	list any -> 5: a@3 b@5
//	list any limit=500 -> 5: a@3 more=t1
//	watch 5 -> mod a@6; bookmark 9; close
//	watch 5 for 3s -> wait timeout; close
//	stream latest -> add a@3; end 5; hang
//	list latest -> error expired
//
// A request names only what matters to the story; limits are checked if given.
// Answers of watches may `wait 10s` between events, and end by close, error or
// hang (until the reflector lets go); noanswer does not even open one. The other sections are what must be seen.
type story struct {
	server string
	// handler is what a subscriber sees, errors what OnError was given, each by
	// the reason or a part of the text; bad what OnBad was given, by key
	// or ? without one.
	handler, errors, bad string
	// store is the content at the end.
	store string
	// disk is what the store kept, as the answer to a list says it, 42 s ago.
	disk string
	// fill says that the store takes its first state in pieces.
	fill bool
	// other says that it is of another source, unsound that it lacks something.
	other, unsound bool
	opts           tarn.Options[*thing]
	// took is how long the story may take: at least and at most, if not zero.
	atLeast, atMost time.Duration
	// meanwhile is run beside the story, from before its start.
	meanwhile func(r *tarn.Replica[*thing])
	// then is run at the end, while the last watch hangs.
	then func(t *testing.T, r *tarn.Replica[*thing])
}

// thing is the object of stories: name@version/uid=text.
type thing struct {
	name, version, uid, text string
}

func (o *thing) String() string {
	s := o.name + "@" + o.version
	if o.uid != "" {
		s += "/" + o.uid
	}
	if o.text != "" {
		s += "=" + o.text
	}
	return s
}

func parseThing(s string) *thing {
	o := &thing{}
	s, o.text, _ = strings.Cut(s, "=")
	s, o.uid, _ = strings.Cut(s, "/")
	o.name, o.version, _ = strings.Cut(s, "@")
	return o
}

// run plays the story in virtual time and compares.
func (s story) run(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		source := newScripted(t, s.server)
		seen := &transcript{}
		opts := s.opts
		opts.Name = "things"
		opts.OnError = func(_ context.Context, err error) { seen.add("error", describeError(err)) }
		opts.OnBad = func(_ context.Context, b tarn.BadObject) { seen.add("bad", stdcmp.Or(string(b.Key), "?")) }
		var store tarn.ReadStore[*thing] = memory.New[*thing]()
		if s.disk != "" {
			disk := &diskStore{ReadStore: store, kept: s.disk, other: s.other, unsound: s.unsound}
			store = disk
			if s.fill {
				store = &fillStore{diskStore: disk}
			}
		}
		r, err := tarn.NewReplica(source, store, opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Subscribe(func(c tarn.Change[*thing]) { seen.add("handler", describeChange(c)) },
			tarn.SubscribeOptions{Syncs: func() bool { return true }}); err != nil {
			t.Fatal(err)
		}
		if s.meanwhile != nil {
			go s.meanwhile(r)
			synctest.Wait()
		}
		start := time.Now()
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		select {
		case <-source.over:
		case <-time.After(time.Hour):
			t.Errorf("the story did not come to its end; next would be: %q", source.next())
		}
		synctest.Wait()
		took := time.Since(start)
		if s.then != nil {
			s.then(t, r)
			synctest.Wait()
		}
		var content []string
		for _, o := range r.All() {
			content = append(content, o.String())
		}
		stopping := time.Now()
		cancel()
		<-done
		if d := time.Since(stopping); d > time.Second {
			t.Errorf("stopping took %s", d)
		}
		if source.open != 0 {
			t.Errorf("%d streams were left open", source.open)
		}
		compare(t, "handler", s.handler, inOrder(seen.of("handler")))
		compare(t, "errors", s.errors, seen.of("error"))
		compare(t, "bad", s.bad, seen.of("bad"))
		if s.store != "" {
			compareSorted(t, "store", s.store, content)
		}
		if s.atLeast != 0 && took < s.atLeast || s.atMost != 0 && took > s.atMost {
			t.Errorf("took %s, expected %s to %s", took, s.atLeast, s.atMost)
		}
	})
}

func describeChange(c tarn.Change[*thing]) string {
	switch c.Type {
	case tarn.Add:
		if c.Initial {
			return "add " + c.Object.String() + " initial"
		}
		return "add " + c.Object.String()
	case tarn.Update:
		return "update " + c.Old.String() + " -> " + c.Object.String()
	case tarn.Sync:
		return "sync " + c.Object.String()
	default:
		if c.Missed {
			return "delete " + c.Object.String() + " missed"
		}
		return "delete " + c.Object.String()
	}
}

// describeError names an error by what it is to the reflector.
func describeError(err error) string {
	for _, known := range []error{tarn.ErrRewound, tarn.ErrShortWatch, tarn.ErrNoInitialEnd, tarn.ErrSilent, tarn.ErrNoList} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if reason := tarn.ReasonOf(err); reason != tarn.ReasonUnknown {
		return reason.String()
	}
	var last error = err
	for errors.Unwrap(last) != nil {
		last = errors.Unwrap(last)
	}
	return last.Error()
}

// transcript collects what is seen, by kind.
type transcript struct {
	mu    sync.Mutex
	lines []string
}

func (s *transcript) add(kind, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, kind+"\t"+line)
}

func (s *transcript) of(kind string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, l := range s.lines {
		if rest, ok := strings.CutPrefix(l, kind+"\t"); ok {
			out = append(out, rest)
		}
	}
	return out
}

// inOrder sorts what comes in no order: the objects offered again together.
func inOrder(seen []string) []string {
	for i := 0; i < len(seen); i++ {
		end := i
		for end < len(seen) && strings.HasPrefix(seen[end], "sync ") {
			end++
		}
		slices.Sort(seen[i:end])
	}
	return seen
}

func lines(s string) []string {
	var out []string
	for _, l := range strings.Split(s, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

func compare(t *testing.T, what, want string, got []string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(lines(want), "\n"), strings.Join(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func compareSorted(t *testing.T, what, want string, got []string) {
	t.Helper()
	set := func(ss []string) map[string]bool {
		m := map[string]bool{}
		for _, s := range ss {
			m[s] = true
		}
		return m
	}
	if diff := cmp.Diff(set(strings.Fields(want)), set(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// scripted is a source that plays the server of a story.
type scripted struct {
	t    *testing.T
	over chan struct{}

	mu    sync.Mutex
	steps []string
	open  int
}

func newScripted(t *testing.T, server string) *scripted {
	return &scripted{t: t, steps: lines(server), over: make(chan struct{})}
}

func (s *scripted) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.steps) == 0 {
		return ""
	}
	return s.steps[0]
}

// step matches a request and returns the answer to it. The last answer ends the
// story; what is asked afterwards hangs.
func (s *scripted) step(ctx context.Context, request string, limit int64) (string, error) {
	s.mu.Lock()
	if len(s.steps) == 0 {
		s.mu.Unlock()
		<-ctx.Done()
		return "", ctx.Err()
	}
	line := s.steps[0]
	s.steps = s.steps[1:]
	last := len(s.steps) == 0
	s.mu.Unlock()
	if last {
		defer close(s.over)
	}
	want, answer, ok := strings.Cut(line, "->")
	if !ok {
		s.t.Errorf("no answer in %q", line)
	}
	want = strings.TrimSpace(want)
	if strings.Contains(want, "limit=") {
		request += fmt.Sprintf(" limit=%d", limit)
	}
	if want != request {
		s.t.Errorf("the reflector asked %q, the story says %q", request, want)
	}
	return strings.TrimSpace(answer), nil
}

func showVersion(v tarn.Version) string {
	switch v {
	case tarn.Latest:
		return "latest"
	case tarn.Any:
		return "any"
	}
	return string(v)
}

func (s *scripted) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[*thing], error) {
	request := "list " + showVersion(q.AtLeast)
	if q.Continue != "" {
		request += " continue=" + q.Continue
	}
	var page tarn.Page[*thing]
	answer, err := s.step(ctx, request, q.Limit)
	if err != nil {
		return page, err
	}
	if text, ok := strings.CutPrefix(answer, "error "); ok {
		return page, parseError(text)
	}
	if answer == "hang" {
		<-ctx.Done()
		return page, ctx.Err()
	}
	version, items, _ := strings.Cut(answer, ":")
	page.Version = tarn.Version(strings.TrimSpace(version))
	for _, item := range strings.Fields(items) {
		if token, ok := strings.CutPrefix(item, "more="); ok {
			page.Continue = token
		} else if key, ok := strings.CutPrefix(item, "bad="); ok {
			page.Bad = append(page.Bad, tarn.BadObject{Key: tarn.Key(key), Err: errors.New("cannot be read")})
		} else if item == "nil" {
			page.Items = append(page.Items, nil)
		} else {
			page.Items = append(page.Items, parseThing(item))
		}
	}
	return page, nil
}

func (s *scripted) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[*thing], error) {
	request := "watch "
	if q.Initial {
		request = "stream "
	}
	request += showVersion(q.From)
	if q.Timeout < 5*time.Minute {
		request += " for " + q.Timeout.String()
	}
	if q.Timeout >= 10*time.Minute {
		s.t.Errorf("a watch was asked to last %s", q.Timeout)
	}
	answer, err := s.step(ctx, request, 0)
	if err != nil {
		return nil, err
	}
	if text, ok := strings.CutPrefix(answer, "error "); ok {
		return nil, parseError(text)
	}
	if answer == "noanswer" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.open++
	return &scriptedStream{source: s, steps: strings.Split(answer, ";"), timeout: q.Timeout}, nil
}

func (s *scripted) Describe(o *thing) (tarn.Meta, error) {
	if o == nil {
		return tarn.Meta{}, errors.New("nil object")
	}
	m := tarn.Meta{Version: tarn.Version(o.version), UID: o.uid}
	if o.name == "" {
		return m, errors.New("no name")
	}
	m.Key = tarn.Key(o.name)
	return m, nil
}

var reasons = map[string]tarn.Reason{
	"expired": tarn.ReasonExpired, "toonew": tarn.ReasonTooNew, "refused": tarn.ReasonRefused,
	"busy": tarn.ReasonBusy, "internal": tarn.ReasonInternal, "lost": tarn.ReasonLost, "nowatchlist": tarn.ReasonNoWatchList,
}

// parseError reads "busy after=10s" or any text.
func parseError(text string) error {
	var after time.Duration
	if head, d, ok := strings.Cut(text, " after="); ok {
		text = head
		after, _ = time.ParseDuration(d)
	}
	if reason, ok := reasons[text]; ok {
		return tarn.Because(reason, after, errors.New(text))
	}
	if text == "nolist" {
		return tarn.ErrNoList
	}
	return errors.New(text)
}

// scriptedStream plays the events of one watch.
type scriptedStream struct {
	source  *scripted
	steps   []string
	timeout time.Duration
	closed  bool
}

func (s *scriptedStream) Next(ctx context.Context, buf []tarn.Event[*thing]) (int, error) {
	for {
		if len(s.steps) == 0 {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		verb, arg, _ := strings.Cut(strings.TrimSpace(s.steps[0]), " ")
		switch verb {
		case "wait":
			d, err := time.ParseDuration(arg)
			if arg == "timeout" {
				d, err = s.timeout, nil
			}
			if err != nil {
				s.source.t.Errorf("bad step %q", s.steps[0])
			}
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		case "hang":
			<-ctx.Done()
			return 0, ctx.Err()
		case "close":
			return 0, io.EOF
		case "error":
			return 0, parseError(arg)
		default:
			buf[0] = parseEvent(s.source.t, verb, arg)
			s.steps = s.steps[1:]
			return 1, nil
		}
		s.steps = s.steps[1:]
	}
}

func parseEvent(t *testing.T, verb, arg string) tarn.Event[*thing] {
	types := map[string]tarn.EventType{"add": tarn.EventAdded, "mod": tarn.EventModified, "del": tarn.EventDeleted}
	switch verb {
	case "bookmark":
		return tarn.Event[*thing]{Type: tarn.EventBookmark, Version: tarn.Version(arg)}
	case "end":
		return tarn.Event[*thing]{Type: tarn.EventBookmark, Version: tarn.Version(arg), InitialEnd: true}
	case "baddel":
		o := parseThing(arg)
		return tarn.Event[*thing]{Type: tarn.EventDeleted, Bad: tarn.BadObject{Key: tarn.Key(o.name), Version: tarn.Version(o.version), Err: errors.New("cannot be read")}}
	case "badmark":
		return tarn.Event[*thing]{Type: tarn.EventBookmark, Bad: tarn.BadObject{Err: errors.New("cannot be read")}}
	case "garbled":
		return tarn.Event[*thing]{Type: tarn.EventUndecodable, Bad: tarn.BadObject{Key: tarn.Key(arg), Err: tarn.ErrUndecodable}}
	case "foreign":
		o := parseThing(arg)
		return tarn.Event[*thing]{Type: tarn.EventModified, Bad: tarn.BadObject{Key: tarn.Key(o.name), Version: tarn.Version(o.version), Err: errors.New("foreign")}}
	}
	if types[verb] == 0 {
		t.Errorf("unknown event %q", verb)
	}
	if arg == "nil" {
		return tarn.Event[*thing]{Type: types[verb]}
	}
	return tarn.Event[*thing]{Type: types[verb], Object: parseThing(arg)}
}

func (s *scriptedStream) Close() {
	if !s.closed {
		s.closed = true
		s.source.open--
	}
}

// start runs something until stop, which waits for its end.
func start(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func() {
		cancel()
		<-done
	}
}
