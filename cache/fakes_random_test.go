package cache

import (
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
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn/internal/story"
)

// fakeStep is what a test does to a fake, with any version, as tests do.
type fakeStep struct{ Do, Name, Version, UID string }

func drawFakeStep(rt *rapid.T) fakeStep {
	draw := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, what) }
	return fakeStep{
		Do:   draw("do", "add", "add", "modify", "modify", "delete", "delete", "put", "remove", "wait", "stop", "expire"),
		Name: draw("name", "a", "b", "c"), Version: draw("version", "", "abc", "1", "9", "9", "30"), UID: draw("uid", "u", "u", "v"),
	}
}

func (s fakeStep) object() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: s.Name, ResourceVersion: s.Version, UID: types.UID(s.UID)}}
}

// playFake plays the steps to an informer over fake watches. The list has the same objects
// for ever. It returns what the handler received, and the keys of the store.
func playFake(t *testing.T, l library, version string, listed, steps []fakeStep) (told, keys []string) {
	synctest.Test(t, func(t *testing.T) {
		list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
		for _, s := range listed {
			list.Items = append(list.Items, *s.object())
		}
		var server atomic.Pointer[watch.FakeWatcher]
		server.Store(watch.NewFakeWithChanSize(10, false))
		r := newRecorder(story.Settings{})
		informer := l.newSharedInformer(&ListWatch{
			ListFunc:  func(metav1.ListOptions) (runtime.Object, error) { return list.DeepCopy(), nil },
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return server.Load(), nil },
		}, &corev1.ConfigMap{}, SharedIndexInformerOptions{Indexers: Indexers{}})
		if _, err := informer.AddEventHandler(r.handler("h")); err != nil {
			t.Fatal(err)
		}
		stop := running(informer.RunWithContext)
		for _, s := range steps {
			time.Sleep(2 * time.Second) // a shorter watch without events is a failure
			now := server.Load()
			switch s.Do {
			case "add":
				now.Add(s.object())
			case "modify":
				now.Modify(s.object())
			case "delete":
				now.Delete(s.object())
			case "put":
				must(informer.GetIndexer().Add(s.object()))
			case "remove":
				must(informer.GetIndexer().Delete(s.object()))
			case "wait":
				time.Sleep(3 * time.Minute)
			case "stop", "expire":
				server.Store(watch.NewFakeWithChanSize(10, false))
				if s.Do == "expire" {
					now.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
				} else {
					now.Stop()
				}
				time.Sleep(time.Minute) // until all have listed again
			}
			synctest.Wait()
		}
		time.Sleep(3 * time.Minute)
		keys = informer.GetStore().ListKeys()
		stop()
		told = slices.DeleteFunc(strings.Split(r.handled(), "\n"), confirms)
	})
	slices.Sort(keys)
	return told, keys
}

// TestFakesLikeClientGo: whatever a test does to a fake, its handlers get the same calls
// as with client-go.
func TestFakesLikeClientGo(t *testing.T) {
	listing(t)
	newRecorder(nil).catchReports(t)
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.SampledFrom([]string{"5", "", "0", "abc"}).Draw(rt, "version of the list")
		listed := rapid.SliceOfNDistinct(rapid.Custom(drawFakeStep), 0, 2, func(s fakeStep) string { return s.Name }).Draw(rt, "listed")
		steps := rapid.SliceOfN(rapid.Custom(drawFakeStep), 1, 10).Draw(rt, "steps")
		wantTold, wantKeys := playFake(t, clientGo, version, listed, steps)
		told, keys := playFake(t, ours, version, listed, steps)
		if !slices.Equal(told, wantTold) || !slices.Equal(keys, wantKeys) {
			rt.Fatalf("ours told\n%s\nand has %q; client-go told\n%s\nand has %q",
				strings.Join(told, "\n"), keys, strings.Join(wantTold, "\n"), wantKeys)
		}
	})
}
