package cache

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn"
)

// server answers as its script says and notes every request.
//
// Each kind of request has its own line of answers, because different clients
// ask in a different order. A list of one item at the newest version is a probe.
// Where the script says nothing, a list hangs, a watch stays open and silent, and
// a probe is told the newest version that was ever mentioned.
type server struct {
	objects objects
	// buffer is how many events a watch may hold.
	buffer int
	// lenient ends watches with their context, as those of real servers do.
	// Otherwise only Stop ends them, so that one who forgets it is caught.
	lenient bool

	mu       sync.Mutex
	answers  map[string][]*answer
	requests []string
	newest   string
	// ended is when the last answer was through.
	ended time.Time
}

func newServer(s *script, o objects, buffer int) *server {
	answers := map[string][]*answer{}
	for verb, all := range s.answers {
		for _, a := range all {
			copied := *a
			answers[verb] = append(answers[verb], &copied)
		}
	}
	return &server{objects: o, buffer: buffer, answers: answers, ended: time.Now()}
}

// List and Watch are for callers without a context.
func (s *server) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

func (s *server) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

func (s *server) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	verb, line := "list", showOptions(options)
	if options.Limit == 1 && options.ResourceVersion == "" && options.Continue == "" {
		verb, line = "probe", ""
	}
	a := s.next(verb, line)
	defer s.end()
	if err := s.waitFor(ctx, a); err != nil {
		return nil, err
	}
	if words, ok := a.fault(); ok {
		return nil, fault(words)
	}
	switch {
	case a.has("nil"):
		return nil, nil
	case a.has("typednil"):
		return (*corev1.ConfigMapList)(nil), nil
	case a.has("object"):
		return s.objects.parse("a@3"), nil
	case a.has("{}"):
		return s.objects.list("", "", nil), nil
	}
	token, _ := a.attribute("continue")
	s.mention(a.version())
	return s.objects.list(a.version(), token, a.parts), nil
}

func (s *server) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	verb := "watch"
	if options.SendInitialEvents != nil {
		verb = "stream"
	}
	a := s.next(verb, showOptions(options))
	if err := s.waitFor(ctx, a); err != nil {
		s.end()
		return nil, err
	}
	if words, ok := a.fault(); ok {
		s.end()
		return nil, fault(words)
	}
	if a.has("nil") {
		s.end()
		return nil, nil
	}
	w := &scriptedWatch{server: s, results: make(chan watch.Event, s.buffer), stopped: make(chan struct{})}
	if s.lenient {
		context.AfterFunc(ctx, w.Stop)
	}
	go w.play(a.parts, time.Duration(*options.TimeoutSeconds)*time.Second)
	return w, nil
}

// next notes a request and finds its answer.
func (s *server) next(verb, line string) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	text := verb
	if verb != "probe" { // when one is due is left to chance
		text = strings.TrimSpace(verb + " " + line + " " + showWait(now.Sub(s.ended)))
	}
	s.requests = append(s.requests, text)
	for len(s.answers[verb]) > 0 {
		if a := s.answers[verb][0]; a.times > 0 {
			a.times--
			return a
		}
		s.answers[verb] = s.answers[verb][1:]
	}
	switch verb {
	case "list":
		return &answer{attributes: []string{"hang"}}
	case "probe":
		return &answer{attributes: []string{s.newest}}
	default:
		return &answer{}
	}
}

func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = time.Now()
}

// mention remembers the newest version that was sent.
func (s *server) mention(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == "" || tarn.Version(s.newest).OlderThan(tarn.Version(version)) {
		s.newest = version
	}
}

// waitFor takes the time that an answer takes. A deaf server does not hear that
// the client has gone.
func (s *server) waitFor(ctx context.Context, a *answer) error {
	var after <-chan time.Time
	if !a.has("hang") {
		after = time.After(a.delay())
	}
	if a.has("deaf") {
		ctx = context.Background()
	}
	select {
	case <-after:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// log gives the requests, equal ones in a row as one line.
func (s *server) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for i := 0; i < len(s.requests); {
		n := 1
		for i+n < len(s.requests) && s.requests[i+n] == s.requests[i] {
			n++
		}
		b.WriteString(s.requests[i])
		if n > 1 && s.requests[i] != "probe" { // one for each batch of events
			fmt.Fprintf(&b, " ×%d", n)
		}
		b.WriteString("\n")
		i += n
	}
	return b.String()
}

// showOptions is the text of a request.
func showOptions(o metav1.ListOptions) string {
	words := []string{"rv=" + o.ResourceVersion}
	if o.ResourceVersion == "" {
		words[0] = `rv=""`
	}
	if o.ResourceVersionMatch != "" {
		words = append(words, string(o.ResourceVersionMatch))
	}
	if o.Limit != 0 {
		words = append(words, fmt.Sprintf("limit=%d", o.Limit))
	}
	if o.Continue != "" {
		words = append(words, "continue="+o.Continue)
	}
	if o.SendInitialEvents != nil {
		words = append(words, fmt.Sprintf("initial=%v", *o.SendInitialEvents))
	}
	if o.AllowWatchBookmarks {
		words = append(words, "bookmarks")
	}
	if o.TimeoutSeconds != nil {
		words = append(words, showTimeout(time.Duration(*o.TimeoutSeconds)*time.Second))
	}
	if o.LabelSelector != "" || o.FieldSelector != "" || o.Watch {
		words = append(words, fmt.Sprintf("UNEXPECTED %+v", o))
	}
	return strings.Join(words, " ")
}

// showTimeout is a timeout as the span that it is chosen from.
func showTimeout(d time.Duration) string {
	for _, least := range []time.Duration{5 * time.Minute, 20 * time.Minute} {
		if d >= least && d <= 2*least {
			return fmt.Sprintf("%.0fm..%.0fm", least.Minutes(), 2*least.Minutes())
		}
	}
	return d.String()
}

// scriptedWatch plays events. It is open until it is told to close, or stopped:
// a client that forgets to stop it leaves a goroutine behind, which the bubble
// that it runs in does not forgive.
type scriptedWatch struct {
	server  *server
	results chan watch.Event
	once    sync.Once
	stopped chan struct{}
}

func (w *scriptedWatch) ResultChan() <-chan watch.Event { return w.results }

func (w *scriptedWatch) Stop() {
	w.once.Do(func() {
		w.server.end()
		close(w.stopped)
	})
}

var watchEvents = map[string]watch.EventType{"add": watch.Added, "mod": watch.Modified, "del": watch.Deleted, "odd": "ODD"}

func (w *scriptedWatch) play(parts []string, timeout time.Duration) {
	deadline := time.After(timeout)
	for _, part := range parts {
		words := strings.Fields(part)
		switch words[0] {
		case "close":
			w.close()
			return
		case "wait":
			d, err := time.ParseDuration(words[1])
			if err != nil {
				panic(err)
			}
			select {
			case <-time.After(d):
			case <-w.stopped:
				return
			}
		case "idle": // until the time is up
			if w.idle(words[1], deadline) {
				w.close()
			}
			return
		case "stay": // without end
			w.idle(words[1], nil)
			return
		default:
			if !w.send(w.event(words)) {
				return
			}
		}
	}
	<-w.stopped
}

// idle sends a bookmark every minute, as servers do, and says whether the
// deadline came before the client left.
func (w *scriptedWatch) idle(version string, deadline <-chan time.Time) bool {
	w.server.mention(version)
	for {
		select {
		case <-deadline:
			return true
		case <-w.stopped:
			return false
		case <-time.After(time.Minute):
			w.send(watch.Event{Type: watch.Bookmark, Object: w.server.objects.bookmark(version, false)})
		}
	}
}

func (w *scriptedWatch) close() {
	w.server.end()
	close(w.results)
}

func (w *scriptedWatch) send(e watch.Event) bool {
	select {
	case w.results <- e:
		return true
	case <-w.stopped:
		return false
	}
}

func (w *scriptedWatch) event(words []string) watch.Event {
	o := w.server.objects
	switch words[0] {
	case "bookmark", "end":
		w.server.mention(words[1])
		return watch.Event{Type: watch.Bookmark, Object: o.bookmark(words[1], words[0] == "end")}
	case "error":
		w.server.end()
		if words[1] == "garbage" {
			return watch.Event{Type: watch.Error, Object: o.parse("a@3")}
		}
		status, ok := fault(words[1:]).(apierrors.APIStatus)
		if !ok {
			panic("not an error that a server can send: " + words[1])
		}
		s := status.Status()
		return watch.Event{Type: watch.Error, Object: &s}
	}
	object := o.parse(words[1])
	if m, ok := object.(metav1.Object); ok && !isNil(object) {
		w.server.mention(m.GetResourceVersion())
	}
	return watch.Event{Type: watchEvents[words[0]], Object: object}
}
