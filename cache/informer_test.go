package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"

	"github.com/tarnproject/tarn/internal/story"
)

// listing keeps streams out of tests that are about something else.
func listing(t testing.TB) {
	quiet(t)
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false)
}

// serving is a server with a script.
func serving(t *testing.T, text string) *server {
	s, err := story.ParseScript(text)
	if err != nil {
		t.Fatal(err)
	}
	return newServer(s, objects{}, 0)
}

// running runs something until the returned function is called, which waits for
// its end and returns how long that took.
func running(run func(context.Context)) (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	return func() time.Duration {
		start := time.Now()
		cancel()
		<-ended
		return time.Since(start)
	}
}

func TestListerWatchersThatCannotBeUsed(t *testing.T) {
	listing(t)
	list := func(context.Context, metav1.ListOptions) (runtime.Object, error) { return &corev1.ConfigMapList{}, nil }
	follow := func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }
	for _, c := range []struct {
		name string
		lw   ListerWatcher
		want string
	}{
		{"nil", nil, "the ListerWatcher is nil"},
		{"nil pointer", (*ListWatch)(nil), "the ListerWatcher is nil"},
		{"no list", &ListWatch{WatchFuncWithContext: follow}, "set ListWithContextFunc"},
		{"no watch", &ListWatch{ListWithContextFunc: list}, "set WatchFuncWithContext"},
	} {
		for kind, run := range map[string]func() func(context.Context){
			"shared": func() func(context.Context) {
				return NewSharedInformer(c.lw, &corev1.ConfigMap{}, 0).RunWithContext
			},
			"informer": func() func(context.Context) {
				_, controller := NewInformer(c.lw, &corev1.ConfigMap{}, 0, nil)
				return controller.RunWithContext
			},
			"reflector": func() func(context.Context) {
				return NewReflector(c.lw, &corev1.ConfigMap{}, NewStore(MetaNamespaceKeyFunc), 0).RunWithContext
			},
			"controller": func() func(context.Context) {
				return New(&Config{ListerWatcher: c.lw, ObjectType: &corev1.ConfigMap{}, Queue: NewDeltaFIFO(nil, nil)}).RunWithContext
			},
		} {
			t.Run(c.name+" for "+kind, func(t *testing.T) {
				r := newRecorder(nil)
				r.catchReports(t)
				synctest.Test(t, func(t *testing.T) {
					stop := running(run())
					time.Sleep(time.Minute)
					if took := stop(); took > 0 {
						t.Errorf("it took %v to stop", took)
					}
				})
				if got := r.text("reported"); !strings.Contains(got, c.want) {
					t.Errorf("reported %q, want something with %q", got, c.want)
				}
				if n := strings.Count(r.text("reported"), "\n"); n > 8 {
					t.Errorf("%d reports in a minute: there is no backoff", n)
				}
			})
		}
	}
}

func TestNilHandlers(t *testing.T) {
	listing(t)
	informer := NewSharedInformer(&ListWatch{}, &corev1.ConfigMap{}, 0)
	for name, handler := range map[string]ResourceEventHandler{"nil": nil, "nil pointer": (*ResourceEventHandlerFuncs)(nil)} {
		if handle, err := informer.AddEventHandler(handler); err == nil || handle != nil {
			t.Errorf("%s: got %v, %v, want an error", name, handle, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		store, controller := NewInformer(serving(t, "list 5: a@3"), &corev1.ConfigMap{}, 0, nil)
		stop := running(controller.RunWithContext)
		synctest.Wait()
		if got := showStore(store); got != "a@3 (version 5)\n" || !controller.HasSynced() {
			t.Errorf("without a handler: store %q, synced %v", got, controller.HasSynced())
		}
		stop()
	})
}

// TestNegativePeriods: client-go's timer fires at once again and again.
func TestNegativePeriods(t *testing.T) {
	listing(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(nil)
		shared := NewSharedInformer(serving(t, "list 5: a@3\nwatch: stay 5"), &corev1.ConfigMap{}, -time.Second)
		for name, period := range map[string]time.Duration{"h": -time.Second, "i": time.Second} {
			if _, err := shared.AddEventHandlerWithResyncPeriod(r.handler(name), period); err != nil {
				t.Fatal(err)
			}
		}
		_, alone := NewInformer(serving(t, "list 5: a@3\nwatch: stay 5"), &corev1.ConfigMap{}, -time.Second, r.handler("j"))
		refuses := ""
		reflector := NewReflector(serving(t, "list 5: a@3\nwatch: stay 5"), &corev1.ConfigMap{}, recordingStore{r, &refuses}, -time.Second)
		for _, run := range []func(context.Context){shared.RunWithContext, alone.RunWithContext, reflector.RunWithContext} {
			defer running(run)()
		}
		time.Sleep(time.Minute)
		if got, want := r.handled(), "h: add a@3 (initial)\ni: add a@3 (initial)\nj: add a@3 (initial)\n"; got != want {
			t.Errorf("got calls\n%swant\n%s", got, want)
		}
		if got := r.text("calls"); strings.Contains(got, "resync") {
			t.Errorf("the reflector resynced:\n%s", got)
		}
	})
}

func TestRunTwiceAtOnce(t *testing.T) {
	listing(t)
	synctest.Test(t, func(t *testing.T) {
		server := serving(t, "list 5: a@3")
		informer := NewSharedInformer(server, &corev1.ConfigMap{}, 0)
		returned := make(chan struct{}, 2)
		run := func(ctx context.Context) {
			informer.RunWithContext(ctx)
			returned <- struct{}{}
		}
		stop, stopAgain := running(run), running(run)
		synctest.Wait()
		if len(returned) != 1 {
			t.Errorf("%d of two runs returned", len(returned))
		}
		if informer.IsStopped() {
			t.Error("the second run stopped the first")
		}
		if got := server.log(); strings.Count(got, "list") != 1 {
			t.Errorf("requests:\n%s", got)
		}
		stop()
		stopAgain()
	})
}

func TestStoppedBeforeItRuns(t *testing.T) {
	listing(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		start := time.Now()
		informer := NewSharedInformer(serving(t, "list hang"), &corev1.ConfigMap{}, 0)
		handle, err := informer.AddEventHandler(ResourceEventHandlerFuncs{})
		if err != nil {
			t.Fatal(err)
		}
		informer.RunWithContext(ctx)
		if took := time.Since(start); took > 0 {
			t.Errorf("it took %v to stop", took)
		}
		if !informer.IsStopped() || informer.HasSynced() || handle.HasSynced() {
			t.Errorf("stopped %v, synced %v, handler %v", informer.IsStopped(), informer.HasSynced(), handle.HasSynced())
		}
		if err := ShutDownEventHandler(informer, handle); err != nil {
			t.Error(err)
		}
		if WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			t.Error("the wait says it has synced")
		}
	})
}

func TestRunWaitsForHandlers(t *testing.T) {
	listing(t)
	synctest.Test(t, func(t *testing.T) {
		informer := NewSharedInformer(serving(t, "list 5: a@3 b@5"), &corev1.ConfigMap{}, 0)
		calls := 0
		_, err := informer.AddEventHandler(ResourceEventHandlerFuncs{AddFunc: func(any) {
			calls++
			time.Sleep(time.Minute)
		}})
		if err != nil {
			t.Fatal(err)
		}
		stop := running(informer.RunWithContext)
		time.Sleep(10 * time.Second)
		if took := stop(); took != 50*time.Second {
			t.Errorf("Run returned after %v, while the handler was at work for 50s more", took)
		}
		if calls != 1 {
			t.Errorf("%d calls, want only the one that was running", calls)
		}
	})
}

func TestPanicOfAHandlerReachesWhoRuns(t *testing.T) {
	listing(t)
	handlers := utilruntime.PanicHandlers
	defer func() { utilruntime.PanicHandlers = handlers }()
	utilruntime.PanicHandlers = nil
	for _, l := range []library{ours, clientGo} {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := serving(t, "list 5: a@3")
				server.lenient = true
				_, controller := l.newInformer(InformerOptions{
					ListerWatcher: server,
					ObjectType:    &corev1.ConfigMap{},
					Handler:       ResourceEventHandlerFuncs{AddFunc: func(any) { panic("boom") }},
				})
				var got any
				stop := running(func(ctx context.Context) {
					defer func() { got = recover() }()
					controller.RunWithContext(ctx)
				})
				synctest.Wait()
				stop()
				if fmt.Sprint(got) != "boom" {
					t.Errorf("got a panic of %v", got)
				}
			})
		})
	}
}

func TestErrorsTellWhatToDo(t *testing.T) {
	listing(t)
	for _, c := range []struct {
		name, script, want string
		is                 func(error) bool
	}{
		{"forbidden", "list error 403", "grant list and watch", apierrors.IsForbidden},
		{"not found", "list error 404", "is the CRD installed", apierrors.IsNotFound},
		{"list", "list error 500", "failed to list *v1.ConfigMap", apierrors.IsInternalError},
		// A watch's error is handed over bare, as it always was.
		{"watch", "list 5: a@3\nwatch error 403", "configmaps is forbidden: no rights", apierrors.IsForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				informer := NewSharedInformer(serving(t, c.script), &corev1.ConfigMap{}, 0)
				var got []error
				if err := informer.SetWatchErrorHandler(func(r *Reflector, err error) {
					got = append(got, err)
					if !strings.Contains(r.Name(), "testing") {
						t.Errorf("the reflector is called %q, want its caller", r.Name())
					}
				}); err != nil {
					t.Fatal(err)
				}
				stop := running(informer.RunWithContext)
				synctest.Wait()
				stop()
				if len(got) != 1 || !strings.Contains(got[0].Error(), c.want) || !c.is(got[0]) {
					t.Errorf("got %v, want one error with %q", got, c.want)
				}
			})
		})
	}
}

// TestDefaultErrorHandler: what heals by itself is not worth an error.
func TestDefaultErrorHandler(t *testing.T) {
	quiet(t)
	reflector := newShownReflector("name", "type", nil).Reflector
	for want, err := range map[bool]error{false: apierrors.NewResourceExpired("old"), true: errors.New("boom")} {
		r := newRecorder(nil)
		r.catchReports(t)
		DefaultWatchErrorHandler(t.Context(), reflector, err)
		if got := r.text("reported") != ""; got != want {
			t.Errorf("%v: reported %v, want %v", err, got, want)
		}
	}
}
