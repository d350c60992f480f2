package wire

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func decodeAgain(t testing.TB, d *Decoder, raw []byte) *corev1.Pod {
	t.Helper()
	pod, err := d.ProtobufAgain(slices.Clone(raw))
	if err != nil {
		t.Fatal(err)
	}
	return pod.(*corev1.Pod)
}

// restarted is a later state of a pod: its status and version differ.
func restarted(pod *corev1.Pod, nth int) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ResourceVersion = fmt.Sprint(100_000 + nth)
	pod.Status.Message = fmt.Sprintf("restarted for the %dth time", nth)
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].RestartCount = int32(nth)
	}
	return pod
}

// Whatever changes from state to state, and whatever stays, the values are the stock
// decoder's, for every type.
func TestPastEveryType(t *testing.T) {
	pool := NewPool()
	filler := newFiller(7)
	random := rand.New(rand.NewPCG(1, 2))
	for _, of := range protobufTypes() {
		t.Run(of.String(), func(t *testing.T) {
			shared := newProtobuf(t, of, Options{Pool: pool})
			private := newProtobuf(t, of, Options{Pool: pool, PrivateMaps: true})
			var states [2]reflect.Value
			var kept, copies []any
			for round := range 16 {
				i := round % len(states)
				if !states[i].IsValid() {
					states[i] = reflect.New(of)
					filler.Fill(states[i].Interface())
				}
				state := states[i].Elem()
				if meta, ok := states[i].Interface().(metav1.Object); ok {
					meta.SetUID(types.UID(fmt.Sprint("object-", i)))
					meta.SetResourceVersion(fmt.Sprint(round))
				}
				// Every third state is another one in one field, every seventh in all.
				switch field := state.Field(random.IntN(state.NumField())); {
				case round%7 == 6:
					filler.Fill(states[i].Interface())
				case round%3 == 2 && field.CanSet():
					filler.Fill(field.Addr().Interface())
				}
				raw := marshal(t, states[i].Interface())
				want, err := stockProtobuf(of, raw)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range []*Decoder{shared, private} {
					got, err := d.ProtobufAgain(slices.Clone(raw))
					if err != nil {
						t.Fatal(err)
					}
					if !reflect.DeepEqual(got, want) {
						t.Fatalf("round %d: got\n%#v, want\n%#v", round, got, want)
					}
					checkCapacity(t, reflect.ValueOf(got))
					kept, copies = append(kept, got), append(copies, want)
				}
			}
			if !reflect.DeepEqual(kept, copies) {
				t.Error("objects changed after they were decoded")
			}
		})
	}
}

// What a status update leaves as it was costs no memory, though no other pod has it.
func TestPastIsTakenOver(t *testing.T) {
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: NewPool()})
	pod := replica("set", 1)
	first := decodeAgain(t, d, marshal(t, restarted(pod, 1)))
	second := decodeAgain(t, d, marshal(t, restarted(pod, 2)))
	runtime.KeepAlive(first)
	if !samePointer(first.Spec.Containers, second.Spec.Containers) {
		t.Error("the containers were made anew")
	}
	pod.Spec.NodeName = "another"
	third := decodeAgain(t, d, marshal(t, restarted(pod, 3)))
	if third.Spec.NodeName != "another" || second.Spec.NodeName == "another" {
		t.Errorf("the node is %q, and was %q", third.Spec.NodeName, second.Spec.NodeName)
	}
	runtime.KeepAlive(second)
}

// Entries of a list that change places are not mistaken for each other.
func TestPastKnowsPlaces(t *testing.T) {
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: NewPool()})
	pod := replica("set", 1)
	for i := range 3 {
		entry := metav1.ManagedFieldsEntry{Manager: fmt.Sprint("manager-", i), FieldsV1: &metav1.FieldsV1{}}
		entry.FieldsV1.SetRawString(strings.Repeat(string(rune('a'+i)), 200))
		pod.ManagedFields = append(pod.ManagedFields, entry)
	}
	for round := range 10 {
		pod.ResourceVersion = fmt.Sprint(round)
		n := len(pod.ManagedFields)
		pod.ManagedFields[round%n], pod.ManagedFields[(round+1)%n] = pod.ManagedFields[(round+1)%n], pod.ManagedFields[round%n]
		raw := marshal(t, pod)
		want, _ := stockProtobuf(reflect.TypeFor[corev1.Pod](), raw)
		if got := decodeAgain(t, d, raw); !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: got\n%+v, want\n%+v", round, got.ManagedFields, want.(*corev1.Pod).ManagedFields)
		}
	}
}

// A state takes over parts of the last one, and does not keep the rest of it.
func TestPastIsLetGo(t *testing.T) {
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: NewPool()})
	pod := replica("set", 1)
	old := decodeAgain(t, d, marshal(t, restarted(pod, 1)))
	gone := weak.Make(old)
	now := decodeAgain(t, d, marshal(t, restarted(pod, 2)))
	old = nil
	settle(t, func() bool { return gone.Value() == nil })
	runtime.KeepAlive(now)
}

// What is remembered of objects that are gone is forgotten.
func TestPastForgets(t *testing.T) {
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: NewPool()})
	for i := range 20_000 {
		decodeAgain(t, d, marshal(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", UID: replica("set", i).UID}}))
		if i%1000 == 0 {
			runtime.GC()
		}
	}
	remembered := 0
	for i := range d.past.shards {
		remembered += len(d.past.shards[i].states)
	}
	if remembered > 8_000 {
		t.Errorf("%d states of objects are remembered that are gone", remembered)
	}
}

// Private maps stay private from state to state.
func TestPastPrivateMaps(t *testing.T) {
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: NewPool(), PrivateMaps: true})
	raw := marshal(t, replica("set", 1))
	want := replica("set", 1).Labels
	for range 5 {
		pod := decodeAgain(t, d, raw)
		if !reflect.DeepEqual(pod.Labels, want) {
			t.Fatalf("labels %v", pod.Labels)
		}
		pod.Labels["mine"], pod.Annotations["mine"] = "x", "y"
	}
}

// Someone who changes an object is found out, and what he did is not handed on.
func TestPastMutation(t *testing.T) {
	var told []string
	pool := NewPool()
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: pool, OnMutation: func(err error) { told = append(told, err.Error()) }})
	pod := replica("set", 1)
	last := decodeAgain(t, d, marshal(t, pod))
	last.Spec.NodeName = "changed"
	for n := 0; len(told) == 0 && n < 200_000; n++ { // which hits are checked is left to chance
		next := decodeAgain(t, d, marshal(t, restarted(pod, n)))
		runtime.KeepAlive(last)
		last = next
	}
	if len(told) != 1 || !strings.Contains(told[0], "a part of spec (v1.PodSpec)") {
		t.Fatalf("told %q", told)
	}
	last = decodeAgain(t, d, marshal(t, restarted(pod, 1)))
	if want := replica("set", 1).Spec.NodeName; last.Spec.NodeName != want {
		t.Errorf("the node is %q, should be %q", last.Spec.NodeName, want)
	}
}

// Many goroutines decode states of the same objects.
func TestPastConcurrently(t *testing.T) {
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: NewPool(), OnMutation: func(err error) { t.Error(err) }})
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for round := range 40 {
				for i := range 10 {
					raw := marshal(t, restarted(replica("set", i), round+g))
					want, _ := stockProtobuf(reflect.TypeFor[corev1.Pod](), raw)
					if got := decodeAgain(t, d, raw); !reflect.DeepEqual(got, want) {
						t.Errorf("pod %d, state %d: got\n%+v, want\n%+v", i, round, got, want)
					}
				}
			}
		})
	}
	group.Wait()
}

// What was met before someone was found out is forgotten once, not by each reader that
// comes into being after that.
func TestPastOutlivesReaders(t *testing.T) {
	pool := NewPool()
	pool.mutated()
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: pool})
	remembered := func() (n int) {
		for i := range d.past.shards {
			n += len(d.past.shards[i].states)
		}
		return n
	}
	var pods []*corev1.Pod
	for i := range 5 {
		d.readers = sync.Pool{} // as a garbage collection leaves it
		pods = append(pods, decodeAgain(t, d, marshal(t, replica("set", i))))
	}
	if n := remembered(); n != 5 {
		t.Errorf("%d of 5 states are remembered", n)
	}
	pool.mutated()
	pods = append(pods, decodeAgain(t, d, marshal(t, replica("set", 5))))
	if n := remembered(); n != 1 {
		t.Errorf("%d states are remembered, should be the last one", n)
	}
	runtime.KeepAlive(pods)
}
