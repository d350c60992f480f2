package informers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	stock "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tarnproject/tarn/cache"
)

// choices are the options of a factory, in nobody's dialect.
type choices struct {
	resync    time.Duration
	namespace string
	tweak     func(*metav1.ListOptions)
	resyncOf  map[metav1.Object]time.Duration
	transform cache.TransformFunc
	named     bool
}

// maker makes a factory by these choices.
type maker func(kubernetes.Interface, choices, *cache.InformerName) SharedInformerFactory

// factories are the implementations that every story runs on.
var factories = map[string]maker{
	"client-go": func(client kubernetes.Interface, c choices, name *cache.InformerName) SharedInformerFactory {
		return stock.NewSharedInformerFactoryWithOptions(client, c.resync, stock.WithNamespace(c.namespace),
			stock.WithTweakListOptions(c.tweak), stock.WithCustomResyncConfig(c.resyncOf),
			stock.WithTransform(c.transform), stock.WithInformerName(name))
	},
	"ours": func(client kubernetes.Interface, c choices, name *cache.InformerName) SharedInformerFactory {
		return NewSharedInformerFactoryWithOptions(client, c.resync, WithNamespace(c.namespace),
			WithTweakListOptions(c.tweak), WithCustomResyncConfig(c.resyncOf),
			WithTransform(c.transform), WithInformerName(name))
	},
}

// story is a scenario that must give the same text on every implementation.
type story struct {
	choices choices
	objects func() []runtime.Object // what is there at first
	script  func(*storyRunner)
	want    string
}

func (s story) run(t *testing.T) {
	for name, make := range factories {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := s.runOn(t, make)
				if diff := cmp.Diff(lines(s.want), lines(got)); diff != "" {
					t.Errorf("the story differs (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func (s story) runOn(t *testing.T, make maker) string {
	var objects []runtime.Object
	if s.objects != nil {
		objects = s.objects()
	}
	var name *cache.InformerName
	if s.choices.named {
		var err error
		if name, err = cache.NewInformerName(t.Name()); err != nil {
			t.Fatal(err)
		}
	}
	client := fake.NewSimpleClientset(objects...)
	ctx, cancel := context.WithCancel(t.Context())
	w := &storyRunner{T: t, ctx: ctx, cancel: cancel, client: client, factory: make(client, s.choices, name)}
	s.script(w)
	w.nextSection("")
	cancel()
	w.factory.Shutdown()
	w.nextSection("")
	return w.text.String()
}

// storyRunner runs a story and records the events.
type storyRunner struct {
	*testing.T
	ctx     context.Context
	cancel  func()
	client  *fake.Clientset
	factory SharedInformerFactory

	mu   sync.Mutex
	seen []string // since the last heading, in any order
	text strings.Builder
}

func (w *storyRunner) record(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, fmt.Sprintf(format, args...))
}

// nextSection waits until all goroutines are idle, writes the recorded lines, sorted,
// and begins the next section.
func (w *storyRunner) nextSection(heading string) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.seen)
	for _, line := range w.seen {
		fmt.Fprintln(&w.text, line)
	}
	w.seen = nil
	if heading != "" {
		fmt.Fprintf(&w.text, "-- %s --\n", heading)
	}
}

// wait waits for some time.
func (w *storyRunner) wait(d time.Duration) { <-time.After(d) }

// follow records the events of a handler of the informer.
func (w *storyRunner) follow(informer cache.SharedIndexInformer) {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			if initial {
				w.record("add %s (initial)", brief(o))
			} else {
				w.record("add %s", brief(o))
			}
		},
		UpdateFunc: func(old, new any) { w.record("update %s -> %s", brief(old), brief(new)) },
		DeleteFunc: func(o any) { w.record("delete %s", brief(o)) },
	})
	w.must(err)
}

func (w *storyRunner) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// brief names an object and its "v" label.
func brief(o any) string {
	m, ok := o.(metav1.Object)
	if !ok {
		return fmt.Sprintf("%T", o)
	}
	name := m.GetName()
	if m.GetNamespace() != "" {
		name = m.GetNamespace() + "/" + name
	}
	if v := m.GetLabels()["v"]; v != "" {
		name += "@" + v
	}
	return name
}

// lines splits a text for comparison; indentation does not matter.
func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}
