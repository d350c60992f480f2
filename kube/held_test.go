package kube

import (
	"fmt"
	"net/http"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// sized is a store of so many objects.
type sized struct {
	*memory.Store[*corev1.Pod]
	objects int
}

func (s sized) Len() int { return s.objects }

// An update reuses what it does not change from the held object, if it was given
// one, and unless there are too many objects whose delete was never seen.
func TestUpdatesTakeOverWhatIsHeld(t *testing.T) {
	const first, second = 1, 2
	inTurn := func(turn int) *corev1.Pod {
		pod := newPod(7)
		pod.UID = "the-pod"
		pod.ResourceVersion = fmt.Sprint(turn)
		pod.Spec.NodeName = "a-node-that-no-other-pod-is-on"
		pod.Status.Message = fmt.Sprint("in turn ", turn)
		return pod
	}
	others := newPods(2 * spareStates)
	for i, pod := range others {
		pod.UID, pod.Name = types.UID(fmt.Sprint("other-", i)), fmt.Sprint("other-", i)
	}
	for name, test := range map[string]struct {
		listed  []*corev1.Pod
		initial bool
		holder  func(*memory.Store[*corev1.Pod]) tarn.Holder
		want    bool
	}{
		"listed":   {holder: func(s *memory.Store[*corev1.Pod]) tarn.Holder { return s }, want: true},
		"streamed": {initial: true, holder: func(s *memory.Store[*corev1.Pod]) tarn.Holder { return s }, want: true},
		"not held": {holder: func(*memory.Store[*corev1.Pod]) tarn.Holder { return nil }},
		"many, all there": {listed: others, want: true, holder: func(s *memory.Store[*corev1.Pod]) tarn.Holder {
			return sized{s, len(others)}
		}},
		"many, and few there": {listed: others, holder: func(s *memory.Store[*corev1.Pod]) tarn.Holder { return s }},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
				switch q := r.URL.Query(); {
				case q.Get("watch") == "":
					answer(w, protobufType, podList(t, protobufType, append(test.listed, inTurn(first)), "1"))
				case q.Get("sendInitialEvents") == "true":
					answer(w, protobufType, append(event(t, protobufType, "ADDED", inTurn(first)), bookmark(t, protobufType, "1", true)...))
				default:
					answer(w, protobufType, event(t, protobufType, "MODIFIED", inTurn(second)))
				}
			})
			source := newSource[*corev1.Pod](t, server, pods, SourceOptions{})
			store := memory.New[*corev1.Pod]()
			held := test.holder(store)
			watch := func(q tarn.WatchQuery) *corev1.Pod {
				q.Held, q.Timeout = held, time.Minute
				stream, err := source.Watch(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				defer stream.Close()
				events, _ := collect(t, stream, 10)
				return events[0].Object
			}
			var old *corev1.Pod
			if test.initial {
				old = watch(tarn.WatchQuery{Initial: true})
			} else {
				page, err := source.List(t.Context(), tarn.ListQuery{Held: held})
				if err != nil {
					t.Fatal(err)
				}
				old = page.Items[len(page.Items)-1]
			}
			if err := store.Apply([]tarn.Change[*corev1.Pod]{{Type: tarn.Add, Key: keyOf(old.Namespace, old.Name), Object: old}}, tarn.At("1")); err != nil {
				t.Fatal(err)
			}
			now := watch(tarn.WatchQuery{From: "1"})
			if now.Status.Message != "in turn 2" || now.Spec.NodeName != old.Spec.NodeName {
				t.Fatalf("got %+v", now)
			}
			if got := unsafe.StringData(now.Spec.NodeName) == unsafe.StringData(old.Spec.NodeName); got != test.want {
				t.Errorf("the spec was taken over: %v, should be %v", got, test.want)
			}
		})
	}
}
