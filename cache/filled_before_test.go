package cache

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// madeBy is an object whose label "from" says who made it.
func madeBy(name, version, from string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: version, Labels: map[string]string{"from": from}}}
}

// calls records what a handler of ConfigMaps is given, by key and in the order of each key.
type calls struct {
	mu    sync.Mutex
	lines []string
}

func (c *calls) handler(name string) ResourceEventHandler {
	say := func(object any, format string, args ...any) {
		key, _ := DeletionHandlingMetaNamespaceKeyFunc(object)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lines = append(c.lines, fmt.Sprintf("%s %s: %s", name, key, fmt.Sprintf(format, args...)))
	}
	text := func(object any) string {
		suffix := ""
		if gone, ok := object.(DeletedFinalStateUnknown); ok {
			object, suffix = gone.Obj, " (final state unknown)"
		}
		m := object.(*corev1.ConfigMap)
		return fmt.Sprintf("%s@%s%s", m.Labels["from"], m.ResourceVersion, suffix)
	}
	return ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, initial bool) { say(object, "add %s, initial %v", text(object), initial) },
		UpdateFunc: func(old, object any) { say(object, "update %s to %s", text(old), text(object)) },
		DeleteFunc: func(object any) { say(object, "delete %s", text(object)) },
	}
}

// note records a line that sorts with the others of no handler.
func (c *calls) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, ": "+fmt.Sprintf(format, args...))
}

func (c *calls) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := slices.Clone(c.lines)
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Compare(a[:strings.Index(a, ":")], b[:strings.Index(b, ":")])
	})
	return strings.Join(lines, "\n")
}

// Tests of controllers put objects into the store of an informer before they start it.
// Handlers learn from the first list what has become of these objects, as with client-go.
func TestStoreFilledBeforeTheStart(t *testing.T) {
	listing(t)
	fill := func(store Store) {
		for _, o := range []*corev1.ConfigMap{
			madeBy("same", "3", "server"), madeBy("older", "2", "test"), madeBy("newer", "40", "test"),
			madeBy("other", "3", "test"), madeBy("unversioned", "", "test"), madeBy("gone", "3", "test"),
		} {
			must(store.Add(o))
		}
	}
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []corev1.ConfigMap{
		*madeBy("same", "3", "server"), *madeBy("older", "4", "server"), *madeBy("newer", "4", "server"),
		*madeBy("other", "3", "server"), *madeBy("unversioned", "", "server"), *madeBy("fresh", "5", "server"),
	}}
	scenarios := map[string]func(l library, lw ListerWatcher, c *calls) (run func(), store Store){
		"handler before": func(l library, lw ListerWatcher, c *calls) (func(), Store) {
			informer := l.newSharedInformer(lw, &corev1.ConfigMap{}, SharedIndexInformerOptions{})
			_, err := informer.AddEventHandler(c.handler("h"))
			must(err)
			fill(informer.GetStore())
			return runFor(informer.RunWithContext, func() {}), informer.GetStore()
		},
		"handler after": func(l library, lw ListerWatcher, c *calls) (func(), Store) {
			informer := l.newSharedInformer(lw, &corev1.ConfigMap{}, SharedIndexInformerOptions{})
			fill(informer.GetStore())
			_, err := informer.AddEventHandler(c.handler("h"))
			must(err)
			return runFor(informer.RunWithContext, func() {}), informer.GetStore()
		},
		"handlers before and during the first list": func(l library, lw ListerWatcher, c *calls) (func(), Store) {
			informer := l.newSharedInformer(lw, &corev1.ConfigMap{}, SharedIndexInformerOptions{})
			_, err := informer.AddEventHandler(c.handler("early"))
			must(err)
			fill(informer.GetStore())
			return runFor(informer.RunWithContext, func() {
				_, err := informer.AddEventHandler(c.handler("late"))
				must(err)
			}), informer.GetStore()
		},
		"with resyncs": func(l library, lw ListerWatcher, c *calls) (func(), Store) {
			informer := l.newSharedInformer(lw, &corev1.ConfigMap{}, SharedIndexInformerOptions{ResyncPeriod: 3 * time.Second})
			_, err := informer.AddEventHandler(c.handler("often"))
			must(err)
			_, err = informer.AddEventHandlerWithResyncPeriod(c.handler("never"), 0)
			must(err)
			fill(informer.GetStore())
			return runFor(informer.RunWithContext, func() {}), informer.GetStore()
		},
		"a controller": func(l library, lw ListerWatcher, c *calls) (func(), Store) {
			store, controller := l.newInformer(InformerOptions{ListerWatcher: lw, ObjectType: &corev1.ConfigMap{}, Handler: c.handler("h")})
			fill(store)
			return runFor(controller.RunWithContext, func() {}), store
		},
	}
	play := func(t *testing.T, l library, set func(library, ListerWatcher, *calls) (func(), Store)) (told string) {
		synctest.Test(t, func(t *testing.T) {
			var c calls
			run, store := set(l, &ListWatch{
				ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
					time.Sleep(2 * time.Second)
					return list.DeepCopy(), nil
				},
				WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
			}, &c)
			run()
			told = c.String()
			var held []string
			for _, o := range store.List() {
				held = append(held, o.(*corev1.ConfigMap).Name+" from "+o.(*corev1.ConfigMap).Labels["from"])
			}
			slices.Sort(held)
			told += "\nstore: " + strings.Join(held, ", ")
		})
		return told
	}
	for name, set := range scenarios {
		t.Run(name, func(t *testing.T) {
			if got, want := play(t, ours, set), play(t, clientGo, set); got != want {
				t.Errorf("ours told\n%s\n\nclient-go told\n%s", got, want)
			}
		})
	}
}

// runFor returns a function that runs an informer for four seconds and calls during after
// one.
func runFor(run func(context.Context), during func()) func() {
	return func() {
		stop := running(run)
		time.Sleep(time.Second)
		synctest.Wait()
		during()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		stop()
	}
}
