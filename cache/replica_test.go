package cache

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn"
	framework "github.com/tarnproject/tarn/cache/testing"
)

func onePod(t *testing.T) *framework.FakeControllerSource {
	source := framework.NewFakeControllerSource()
	t.Cleanup(source.Broadcaster.Shutdown)
	source.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}})
	return source
}

func TestReplicaOfTellsWhatInterfacesCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := onePod(t)
		informer := NewSharedIndexInformer(source, &corev1.Pod{}, 0, Indexers{})
		replica, ok := ReplicaOf(typed[*corev1.Pod](informer))
		if !ok {
			t.Fatal("no replica behind a wrapped informer")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); informer.RunWithContext(ctx) }()
		if err := replica.WaitSynced(ctx); err != nil {
			t.Fatal(err)
		}
		source.Modify(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}})
		if err := replica.WaitFor(ctx, "2"); err != nil {
			t.Fatal(err)
		}
		if h := replica.Health(); !h.Synced || h.Version != "2" || h.Err != nil {
			t.Errorf("health: %s", h)
		}
		cancel()
		<-done
		source.Broadcaster.Shutdown()
	})
	if _, ok := ReplicaOf(upstream.NewSharedIndexInformer(&ListWatch{}, &corev1.Pod{}, 0, Indexers{})); ok {
		t.Error("a replica behind client-go's informer")
	}
}

func TestDetectMutationsNamesTheField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := onePod(t)
		informer := NewSharedIndexInformer(source, &corev1.Pod{}, 0, Indexers{})
		reports := make(chan MutationReport, 1)
		if err := DetectMutations(informer, func(r MutationReport) { reports <- r }); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); informer.RunWithContext(ctx) }()
		WaitForCacheSync(ctx.Done(), informer.HasSynced)
		synctest.Wait()
		pod, _, _ := informer.GetStore().GetByKey("ns/p")
		pod.(*corev1.Pod).Spec.NodeName = "elsewhere"
		// For the race detector: what comes through the informer after the write
		// is seen by the mutation detector after it too.
		source.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q"}})
		time.Sleep(2 * time.Second)
		if report := (<-reports).String(); !strings.Contains(report, "ns/p") || !strings.Contains(report, "spec.nodeName") || !strings.Contains(report, "elsewhere") {
			t.Errorf("the report does not name object, field and difference: %s", report)
		}
		if err := DetectMutations(informer, nil); err == nil {
			t.Error("no error after the start")
		}
		cancel()
		<-done
		source.Broadcaster.Shutdown()
	})
}

// TestReflectorWithoutStore: what is missing is said by ListAndWatch.
func TestReflectorWithoutStore(t *testing.T) {
	r := NewReflector(onePod(t), &corev1.Pod{}, nil, 0)
	if err := r.ListAndWatch(t.Context().Done()); err == nil || !strings.Contains(err.Error(), "the store is nil") {
		t.Errorf("got %v", err)
	}
}

// TestRewoundUpdateIsDelivered: the same version after a rewind may be another
// state, so every handler gets it.
func TestRewoundUpdateIsDelivered(t *testing.T) {
	pod := func(node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "7"}, Spec: corev1.PodSpec{NodeName: node}}
	}
	var seen []string
	r := &registration{informer: &informer{}, handler: ResourceEventHandlerFuncs{
		UpdateFunc: func(_, now any) { seen = append(seen, now.(*corev1.Pod).Spec.NodeName) },
	}}
	r.deliver(tarn.Change[any]{Type: tarn.Update, Old: pod("a"), Object: pod("b")})
	r.deliver(tarn.Change[any]{Type: tarn.Update, Old: pod("a"), Object: pod("c"), Rewound: true})
	if len(seen) != 1 || seen[0] != "c" {
		t.Errorf("delivered %v, expected only the rewound one", seen)
	}
}

// TestLostConnections: what client-go says when a connection breaks under a
// watch, and when an event cannot be decoded, looks almost the same.
func TestLostConnections(t *testing.T) {
	reporter := apierrors.NewClientErrorReporter(500, "GET", "ClientWatchDecoding")
	for text, want := range map[string]tarn.Reason{
		"unable to decode an event from the watch stream: http2: client connection lost":                              tarn.ReasonLost,
		"unable to decode an event from the watch stream: http2: client connection force closed via ClientConn.Close": tarn.ReasonLost,
		"unable to decode an event from the watch stream: read tcp 127.0.0.1:1: connection reset by peer":             tarn.ReasonLost,
		"unable to decode an event from the watch stream: illegal base64 data at input byte 4":                        tarn.ReasonInternal,
	} {
		err := classify(apierrors.FromObject(reporter.AsObject(errors.New(text))))
		if got := tarn.ReasonOf(err); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
