package cache

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn/internal/story"
)

// server is a ListerWatcher that answers as its script says and records every request.
type server struct {
	*story.Server
	objects objects
	// buffer is how many events a watch may hold.
	buffer int
	// lenient ends watches with their context, as those of real servers do.
	// Otherwise only Stop ends them, so that a client that forgets it is caught.
	lenient bool
}

func newServer(s *story.Script, o objects, buffer int) *server {
	return &server{Server: story.NewServer(s), objects: o, buffer: buffer}
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
	a := s.Next(verb, line)
	defer s.End()
	if err := a.Wait(ctx); err != nil {
		return nil, err
	}
	if words, ok := a.Fault(); ok {
		return nil, fault(words)
	}
	switch {
	case a.Has("nil"):
		return nil, nil
	case a.Has("typednil"):
		return (*corev1.ConfigMapList)(nil), nil
	case a.Has("object"):
		return s.objects.parse("a@3"), nil
	case a.Has("{}"):
		return s.objects.list("", "", nil), nil
	}
	s.Mention(a.Version())
	return s.objects.list(a.Version(), a.Value("continue"), a.Parts), nil
}

func (s *server) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	verb := "watch"
	if options.SendInitialEvents != nil {
		verb = "stream"
	}
	a := s.Next(verb, showOptions(options))
	if err := a.Wait(ctx); err != nil {
		s.End()
		return nil, err
	}
	if words, ok := a.Fault(); ok {
		s.End()
		return nil, fault(words)
	}
	if a.Has("nil") {
		s.End()
		return nil, nil
	}
	w := &scriptedWatch{server: s, results: make(chan watch.Event, s.buffer), stopped: make(chan struct{})}
	if s.lenient {
		context.AfterFunc(ctx, w.Stop)
	}
	go w.play(s.Play(a, time.Duration(*options.TimeoutSeconds)*time.Second))
	return w, nil
}

var probesInARow = regexp.MustCompile(`(?m)^probe ×\d+$`)

// log gives the requests. How many probes there are in a row is left to chance: one
// for each batch of events.
func (s *server) log() string { return probesInARow.ReplaceAllString(s.Requests(), "probe") }

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
		words = append(words, story.ShowTimeout(time.Duration(*o.TimeoutSeconds)*time.Second))
	}
	if o.LabelSelector != "" || o.FieldSelector != "" || o.Watch {
		words = append(words, fmt.Sprintf("UNEXPECTED %+v", o))
	}
	return strings.Join(words, " ")
}

// scriptedWatch plays events. It is open until the script closes it or the client
// stops it: a client that forgets to stop it leaves a goroutine behind, and the
// bubble that it runs in then fails the test.
type scriptedWatch struct {
	server  *server
	results chan watch.Event
	once    sync.Once
	stopped chan struct{}
}

func (w *scriptedWatch) ResultChan() <-chan watch.Event { return w.results }

func (w *scriptedWatch) Stop() {
	w.once.Do(func() {
		w.server.End()
		close(w.stopped)
	})
}

var watchEvents = map[string]watch.EventType{"add": watch.Added, "mod": watch.Modified, "del": watch.Deleted, "odd": "ODD"}

func (w *scriptedWatch) play(events *story.Player) {
	for {
		words, err := events.Next(w.stopped)
		if err == io.EOF {
			close(w.results)
		}
		if err != nil || !w.send(w.event(words)) {
			return
		}
	}
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
		return watch.Event{Type: watch.Bookmark, Object: o.bookmark(words[1], words[0] == "end")}
	case "error":
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
		w.server.Mention(m.GetResourceVersion())
	}
	return watch.Event{Type: watchEvents[words[0]], Object: object}
}
