package cache

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"pgregory.net/rapid"

	framework "github.com/tarnproject/tarn/cache/testing"
	"github.com/tarnproject/tarn/internal/story"
)

// deed is one step in the life of a random source.
type deed struct {
	What string
	Name string
	Wait time.Duration
}

// troubles are the deeds after which a client has to list again.
var troubles = []string{"add untold", "modify untold", "delete untold", "break", "fail", "heal"}

func drawDeeds(rt *rapid.T, whats []string) []deed {
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) deed {
		return deed{
			What: rapid.SampledFrom(whats).Draw(rt, "what"),
			Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name"),
			Wait: rapid.SampledFrom([]time.Duration{0, 0, 0, time.Millisecond, 2 * time.Second}).Draw(rt, "wait"),
		}
	}), 1, 30).Draw(rt, "deeds")
}

// failingSource is a source that fails on demand.
type failingSource struct {
	*framework.FakeControllerSource
	fails atomic.Bool
}

func (s *failingSource) List(options metav1.ListOptions) (runtime.Object, error) {
	if s.fails.Load() {
		return nil, errors.New("out of order")
	}
	return s.FakeControllerSource.List(options)
}

// do does a deed, if it is possible.
func (d deed) do(source *failingSource, there map[string]types.UID, n int) {
	uid, exists := there[d.Name]
	if !exists {
		uid = types.UID(fmt.Sprintf("%s%d", d.Name, n))
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: d.Name, UID: uid}}
	switch {
	case strings.HasPrefix(d.What, "add") && exists, strings.HasPrefix(d.What, "modify") && !exists, strings.HasPrefix(d.What, "delete") && !exists:
		return
	case d.What == "add":
		source.Add(object)
	case d.What == "modify":
		source.Modify(object)
	case d.What == "delete":
		source.Delete(object)
	case d.What == "add untold":
		source.AddDropWatch(object)
	case d.What == "modify untold":
		source.ModifyDropWatch(object)
	case d.What == "delete untold":
		source.DeleteDropWatch(object)
	case d.What == "break":
		source.ResetWatch()
	case d.What == "fail":
		source.fails.Store(true)
	case d.What == "heal":
		source.fails.Store(false)
	}
	switch {
	case strings.HasPrefix(d.What, "add"):
		there[d.Name] = uid
	case strings.HasPrefix(d.What, "delete"):
		delete(there, d.Name)
	}
}

// suffer runs an informer over the deeds and returns what its handler saw, and
// what its store and the source have in the end.
func suffer(t *testing.T, l library, deeds []deed, handler ResourceEventHandler) (store, truth string) {
	synctest.Test(t, func(t *testing.T) {
		source := &failingSource{FakeControllerSource: framework.NewFakeControllerSource()}
		informer := l.newSharedInformer(noStreams{source}, &corev1.ConfigMap{}, SharedIndexInformerOptions{})
		if _, err := informer.AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
		stop := running(informer.RunWithContext)
		there := map[string]types.UID{}
		for n, d := range deeds {
			synctest.Wait()
			d.do(source, there, n)
			time.Sleep(d.Wait)
		}
		// The end repairs everything: a list finds what no event showed, and the
		// source forces a list on everyone by forgetting its history.
		synctest.Wait()
		for _, what := range []string{"heal", "add untold", "break"} {
			deed{What: what, Name: "last"}.do(source, there, 0)
		}
		time.Sleep(3 * time.Minute)
		store = showStore(informer.GetStore())
		list, err := source.List(metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stop()
		source.Broadcaster.Shutdown()
		reference := NewStore(MetaNamespaceKeyFunc)
		for _, item := range list.(*corev1.List).Items {
			must(reference.Add(item.Object))
		}
		reference.Bookmark(list.(*corev1.List).ResourceVersion)
		truth = showStore(reference)
	})
	return store, truth
}

// TestRandomHistories: whatever happens to the source, both end with its state;
// as long as nothing breaks, both tell the same story; and ours tells a legal one
// in any case.
func TestRandomHistories(t *testing.T) {
	quiet(t)
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false)
	newRecorder(nil).catchReports(t)
	calm := []string{"add", "modify", "delete"}
	t.Run("calm", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			deeds := drawDeeds(rt, calm)
			stories := map[string]string{}
			for _, l := range []library{ours, clientGo} {
				r := newRecorder(story.Settings{"exact": ""})
				if store, truth := suffer(t, l, deeds, r.handler("h")); store != truth {
					rt.Fatalf("%s ends with %q, the source with %q", l.name, store, truth)
				}
				// The last list confirms everything, in any order.
				stories[l.name] = strings.Join(slices.DeleteFunc(strings.Split(r.handled(), "\n"), confirms), "\n")
			}
			if stories[ours.name] != stories[clientGo.name] {
				rt.Fatalf("ours:\n%s\nclient-go:\n%s", stories[ours.name], stories[clientGo.name])
			}
		})
	})
	t.Run("troubled", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			deeds := drawDeeds(rt, append(calm, troubles...))
			for _, l := range []library{ours, clientGo} {
				judge := &judge{known: map[string]string{}}
				store, truth := suffer(t, l, deeds, judge)
				if store != truth {
					rt.Fatalf("%s ends with %q, the source with %q", l.name, store, truth)
				}
				if l.name == ours.name && len(judge.wrong) > 0 {
					rt.Fatalf("ours told:\n%s", strings.Join(judge.wrong, "\n"))
				}
				if content, _, _ := strings.Cut(store, " (version"); l.name == ours.name && judge.content() != content {
					rt.Fatalf("the handler was told %q, the store has %q", judge.content(), content)
				}
			}
		})
	})
}

// confirms says whether a call only repeats what was known.
func confirms(call string) bool {
	old, now, update := strings.Cut(strings.TrimPrefix(call, "update "), " -> ")
	return update && old == now
}

// judge is a handler that finds invalid calls: an add of something known, an update of
// something unknown, or an old state that was not the last. The source is a fake, so
// the handler gets each delete that it sends, also of something unknown.
type judge struct {
	known map[string]string
	wrong []string
}

func (j *judge) find(ok bool, format string, args ...any) {
	if !ok {
		j.wrong = append(j.wrong, fmt.Sprintf(format, args...))
	}
}

func (j *judge) OnAdd(object any, _ bool) {
	key, _ := MetaNamespaceKeyFunc(object)
	last, known := j.known[key]
	j.find(!known, "add %s, known as %s", show(object), last)
	j.known[key] = show(object)
}

func (j *judge) OnUpdate(old, object any) {
	key, _ := MetaNamespaceKeyFunc(object)
	last, known := j.known[key]
	j.find(known && last == show(old), "update %s -> %s, known as %q", show(old), show(object), last)
	j.known[key] = show(object)
}

func (j *judge) OnDelete(object any) {
	key, _ := DeletionHandlingMetaNamespaceKeyFunc(object)
	delete(j.known, key)
}

// content is the result of all calls, as showStore shows it, without the version.
func (j *judge) content() string {
	return strings.Join(slices.Sorted(maps.Values(j.known)), " ")
}
