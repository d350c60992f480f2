package cache

import (
	"github.com/tarnproject/tarn"

	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tarnproject/tarn/internal/story"
)

// recorder records what a client does to its user.
type recorder struct {
	mu    sync.Mutex
	calls []handlerCall
	// lines holds all else, by section.
	lines map[string][]string
	// exact keeps the order in which handlers were called; otherwise, of calls
	// at the same moment only the order of each key's counts: nobody promises
	// an order between keys.
	exact bool
	// panicsOn is an object on which handlers panic.
	panicsOn string
}

type handlerCall struct {
	at                 time.Time
	handler, key, text string
}

func newRecorder(with story.Settings) *recorder {
	return &recorder{lines: map[string][]string{}, exact: with.Has("exact"), panicsOn: with["panics"]}
}

func (r *recorder) note(section, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines[section] = append(r.lines[section], fmt.Sprintf(format, args...))
}

// noteCall records a call of a store, but the same bookmark only once: how many
// come until a watch ends is left to chance.
func (r *recorder) noteCall(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.lines["calls"]; strings.Contains(text, "bookmark") && len(last) > 0 && last[len(last)-1] == text {
		return
	}
	r.lines["calls"] = append(r.lines["calls"], text)
}

// text returns the record of a section.
func (r *recorder) text(section string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines[section]) == 0 {
		return ""
	}
	return strings.Join(r.lines[section], "\n") + "\n"
}

// handled gives the calls of handlers, with names if there are several.
func (r *recorder) handled() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := slices.Clone(r.calls)
	if !r.exact {
		slices.SortStableFunc(calls, func(a, b handlerCall) int {
			return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.handler, b.handler), cmp.Compare(a.key, b.key))
		})
	}
	several := slices.ContainsFunc(calls, func(c handlerCall) bool { return c.handler != "h" })
	var b strings.Builder
	for _, c := range calls {
		if several {
			b.WriteString(c.handler + ": ")
		}
		b.WriteString(c.text + "\n")
	}
	return b.String()
}

// handler is a handler that records its calls under a name.
func (r *recorder) handler(name string) ResourceEventHandler {
	note := func(object any, format string, args ...any) {
		key, _ := DeletionHandlingMetaNamespaceKeyFunc(object)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = append(r.calls, handlerCall{time.Now(), name, key, fmt.Sprintf(format, args...)})
		if show(object) == r.panicsOn {
			panic("the handler panicked")
		}
	}
	return ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if initial {
				note(object, "add %s (initial)", show(object))
			} else {
				note(object, "add %s", show(object))
			}
		},
		UpdateFunc: func(old, object any) { note(object, "update %s -> %s", show(old), show(object)) },
		DeleteFunc: func(object any) { note(object, "delete %s", show(object)) },
	}
}

// catchReports records what goes to the error and panic handlers of the process,
// for as long as the test runs.
func (r *recorder) catchReports(t *testing.T) {
	errorHandlers, panicHandlers, crash := utilruntime.ErrorHandlers, utilruntime.PanicHandlers, utilruntime.ReallyCrash
	t.Cleanup(func() {
		utilruntime.ErrorHandlers, utilruntime.PanicHandlers, utilruntime.ReallyCrash = errorHandlers, panicHandlers, crash
	})
	utilruntime.ReallyCrash = false
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, msg string, keysAndValues ...any) {
			if err == nil {
				err = errors.New(msg)
			}
			text, _, _ := strings.Cut(err.Error(), "\n")
			key := "?"
			for i := 0; i+1 < len(keysAndValues); i += 2 {
				if k := fmt.Sprint(keysAndValues[i+1]); keysAndValues[i] == "key" && k != "" {
					key = k
				}
			}
			r.note("reported", "%s: %s", key, text)
		},
	}
	utilruntime.PanicHandlers = []func(context.Context, any){
		func(_ context.Context, v any) {
			text, _, _ := strings.Cut(fmt.Sprint(v), "\n")
			r.note("panics", "%s", text)
		},
	}
}

// recordingStore is a store of somebody else, which records how a reflector calls it.
type recordingStore struct {
	recorder *recorder
	// refuses is an object that it does not take, or a call that fails, the
	// latter only once.
	refuses *string
}

// fails says whether a call is to fail.
func (s recordingStore) fails(call string) error {
	if *s.refuses != call {
		return nil
	}
	*s.refuses = ""
	return errors.New(call + " fails")
}

func (s recordingStore) note(verb string, object any) error {
	s.recorder.noteCall(verb + " " + show(object))
	if *s.refuses != "" && strings.HasPrefix(show(object), *s.refuses+"@") {
		return errors.New("refused")
	}
	return nil
}

func (s recordingStore) Add(object any) error    { return s.note("add", object) }
func (s recordingStore) Update(object any) error { return s.note("update", object) }
func (s recordingStore) Delete(object any) error { return s.note("delete", object) }

func (s recordingStore) Replace(list []any, version string) error {
	var items []string
	for _, object := range list {
		items = append(items, show(object))
	}
	slices.Sort(items)
	s.recorder.noteCall(fmt.Sprintf("replace at %q: %s", version, strings.Join(items, " ")))
	return s.fails("replace")
}

func (s recordingStore) Resync() error {
	s.recorder.noteCall("resync")
	return s.fails("resync")
}

// versionedStore is a recordingStore with all that a store may have. The version
// that follows a bookmark, always the same, is recorded with it.
type versionedStore struct {
	recordingStore
	bookmarked *string
}

func (s versionedStore) Bookmark(version string) error {
	*s.bookmarked = version
	return s.fails("bookmark")
}

func (s versionedStore) UpdateResourceVersion(version string) {
	if *s.bookmarked != "" {
		s.recorder.noteCall(fmt.Sprintf("bookmark %s, version %s", *s.bookmarked, version))
		*s.bookmarked = ""
		return
	}
	s.recorder.noteCall("version " + version)
}

// showStore is the content of a store and its version.
func showStore(s Store) string {
	var items []string
	for _, object := range s.List() {
		items = append(items, show(object))
	}
	slices.Sort(items)
	return fmt.Sprintf("%s (version %s)\n", strings.Join(items, " "), s.LastStoreSyncResourceVersion())
}

// noteError records what an error handler got, except for bad objects: they are reported to the
// process too, and client-go's handlers never see them (TestBadObjectsReachTheErrorHandler).
func (r *recorder) noteError(err error) {
	if _, bad := errors.AsType[tarn.ObjectErrors](err); !bad {
		r.note("errors", "%s", showError(err))
	}
}
