package protobuf

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// holding is a decoder and the objects that it decoded, by namespace and name.
type holding struct {
	*Decoder
	mu      sync.Mutex
	objects map[string]any
}

func hold(d *Decoder) *holding { return &holding{Decoder: d, objects: map[string]any{}} }

func (h *holding) held(namespace, name string) any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.objects[namespace+"/"+name]
}

func (h *holding) put(namespace, name string, object any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.objects[namespace+"/"+name] = object
}

// pod decodes a state of a pod and holds it.
func (h *holding) pod(t testing.TB, m Event, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	object, err := h.DecodeAt(m, wiretest.Marshal(t, pod), h.held)
	if err != nil {
		t.Fatal(err)
	}
	h.put(pod.Namespace, pod.Name, object)
	return object.(*corev1.Pod)
}

// Whatever changes or stays from state to state, the values are the stock
// decoder's, for every type.
func TestLastStateEveryType(t *testing.T) {
	parts := pool.New()
	filler := newFiller(7)
	random := rand.New(rand.NewPCG(1, 2))
	for _, of := range wiretest.Some(protobufTypes()) {
		t.Run(of.String(), func(t *testing.T) {
			shared := hold(newProtobuf(t, of, pool.Options{Pool: parts, SharedMetadata: true}))
			private := hold(newProtobuf(t, of, pool.Options{Pool: parts}))
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
					meta.SetName(fmt.Sprint(i))
					meta.SetNamespace("")
					meta.SetResourceVersion(fmt.Sprint(round))
				}
				// Every third state differs in one field, every seventh in all.
				switch field := state.Field(random.IntN(state.NumField())); {
				case round%7 == 6:
					filler.Fill(states[i].Interface())
				case round%3 == 2 && field.CanSet():
					filler.Fill(field.Addr().Interface())
				}
				raw := wiretest.Marshal(t, states[i].Interface())
				want, err := stockProtobuf(of, raw)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range []*holding{shared, private} {
					event := []Event{Added, Modified, Modified, Modified, Deleted}[round/2%5]
					got, err := d.DecodeAt(event, slices.Clone(raw), d.held)
					if err != nil {
						t.Fatal(err)
					}
					d.put("", fmt.Sprint(i), got)
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

// What a status update leaves unchanged costs no memory, even if no other pod has
// it and it is the first update.
func TestLastStateIsTakenOver(t *testing.T) {
	h := hold(newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()}))
	pod := wiretest.Replica("set", 1)
	first := h.pod(t, Added, pod)
	second := h.pod(t, Modified, wiretest.Restarted(pod, 2))
	third := h.pod(t, Modified, wiretest.Restarted(pod, 3))
	if !samePointer(first.Spec.Containers, second.Spec.Containers) || !samePointer(second.Spec.Containers, third.Spec.Containers) {
		t.Error("the containers were made anew")
	}
	// A list repeats the held objects.
	h.put(pod.Namespace, pod.Name, third)
	if _, err := h.DecodeAt(Added, wiretest.Marshal(t, third), h.held); err != nil {
		t.Fatal(err)
	}
	fourth := h.pod(t, Modified, wiretest.Restarted(pod, 4))
	if !samePointer(third.Spec.Containers, fourth.Spec.Containers) {
		t.Error("after a list the containers were made anew")
	}
	pod.Spec.NodeName = "another"
	fifth := h.pod(t, Modified, wiretest.Restarted(pod, 5))
	if fifth.Spec.NodeName != "another" || fourth.Spec.NodeName == "another" {
		t.Errorf("the node is %q, and was %q", fifth.Spec.NodeName, fourth.Spec.NodeName)
	}
}

// Only the spec of a first state is remembered. That nothing else can be taken over
// from it must not stop later states from trying.
func TestLastStateIsNotGivenUp(t *testing.T) {
	h := hold(newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()}))
	const pods = 200
	turn := func(m Event, nth int) (all []*corev1.Pod) {
		for i := range pods {
			pod := wiretest.Restarted(wiretest.Replica("set", i), nth)
			entry := metav1.ManagedFieldsEntry{Manager: "kubelet", FieldsV1: &metav1.FieldsV1{}}
			entry.FieldsV1.SetRawString(strings.Repeat(fmt.Sprint("fields of pod ", i, ", "), 20))
			pod.ManagedFields = []metav1.ManagedFieldsEntry{entry}
			all = append(all, h.pod(t, m, pod))
		}
		return all
	}
	turn(Added, 1)
	second, third := turn(Modified, 2), turn(Modified, 3)
	kept := 0
	for i := range pods {
		if second[i].ManagedFields[0].FieldsV1 == third[i].ManagedFields[0].FieldsV1 {
			kept++
		}
	}
	if kept < pods*3/4 {
		t.Errorf("of %d pods %d have taken over what the update before did not change", pods, kept)
	}
}

// A state takes over only from the state that its bytes were compared with,
// whatever is held by then: an earlier one, a later one, one of the same version
// with another content, another object of the same name, something else, or
// nothing.
func TestLastStateOfAnotherState(t *testing.T) {
	of := reflect.TypeFor[corev1.Pod]()
	random := rand.New(rand.NewPCG(3, 4))
	h := hold(newProtobuf(t, of, pool.Options{Pool: pool.New()}))
	state := func() *corev1.Pod {
		pod := wiretest.Restarted(wiretest.Replica("set", random.IntN(2)), random.IntN(3))
		pod.Name = fmt.Sprint("pod-", random.IntN(2))
		pod.Spec.NodeName = fmt.Sprint("node-", random.IntN(3))
		return pod
	}
	takenOver := 0
	for round := range wiretest.Some(make([]struct{}, 5_000)) {
		pod := state()
		raw := wiretest.Marshal(t, pod)
		last, _ := h.held(pod.Namespace, pod.Name).(*corev1.Pod)
		got, err := h.DecodeAt([]Event{Added, Modified, Modified, Deleted}[random.IntN(4)], raw, h.held)
		if err != nil {
			t.Fatal(err)
		}
		if want, _ := stockProtobuf(of, raw); !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: got\n%+v, want\n%+v", round, got, want)
		}
		if last != nil && samePointer(last.Spec.Containers, got.(*corev1.Pod).Spec.Containers) {
			takenOver++
		}
		switch random.IntN(6) {
		case 0: // it was not taken
		case 1:
			h.put(pod.Namespace, pod.Name, state())
		case 2:
			h.put(pod.Namespace, pod.Name, []any{nil, (*corev1.Pod)(nil), &corev1.Node{}, "text"}[random.IntN(4)])
		default:
			h.put(pod.Namespace, pod.Name, got)
		}
	}
	if takenOver == 0 {
		t.Error("nothing was taken over")
	}
}

// A state of the same version as the one before, which a rewound server may send,
// replaces it in memory; a state without a version is never remembered.
func TestLastStateOfTheSameVersion(t *testing.T) {
	h := hold(newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()}))
	on := func(node, version, message string) *corev1.Pod {
		pod := wiretest.Replica("set", 1)
		pod.Spec.NodeName, pod.ResourceVersion, pod.Status.Message = node, version, message
		return pod
	}
	h.pod(t, Added, on("x", "1", ""))
	second := h.pod(t, Added, on("y", "1", ""))
	third := h.pod(t, Modified, on("y", "2", "changed"))
	if unsafe.StringData(second.Spec.NodeName) != unsafe.StringData(third.Spec.NodeName) {
		t.Error("the state that is held was not noted")
	}
	for _, event := range []Event{Added, Modified} {
		h.pod(t, event, on("z", "", ""))
		if n := h.lastStates.len(); n != 0 {
			t.Errorf("%d states without a version are remembered", n)
		}
		h.pod(t, Added, on("x", "1", ""))
	}
}

// Memory of forgotten states is released.
func TestLastStateShrinks(t *testing.T) {
	var p lastStates
	one, two := partHashes{n: 1}, partHashes{n: 2}
	const objects = 16_000
	for uid := range uint64(objects) {
		p.note(uid, &one, true)
	}
	for uid := range uint64(objects) {
		p.note(uid, &two, false)
	}
	room := func() (once, more int) {
		for i := range p.shards {
			once, more = once+p.shards[i].once.peak, more+p.shards[i].more.peak
		}
		return once, more
	}
	if once, more := room(); once > objects/8 || more < objects {
		t.Errorf("room for %d and %d, of %d objects all of which changed", once, more, objects)
	}
	for uid := range uint64(objects) {
		p.forget(uid)
	}
	if once, more := room(); once+more > 2*stateShards*minPeak {
		t.Errorf("room for %d and %d, of objects all of which are gone", once, more)
	}
}

// Hashes of a state do not match another state at the same address.
func TestLastStateSalt(t *testing.T) {
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()})
	r := &reader{decoder: d, pool: d.opts.Pool}
	var here, there corev1.Pod
	salts := map[uint64]bool{}
	for _, state := range []*corev1.Pod{&here, &there} {
		for _, version := range []string{"1", "2", ""} {
			state.ResourceVersion = version
			salts[r.salt(unsafe.Pointer(state))] = true
		}
	}
	if len(salts) != 6 {
		t.Errorf("%d salts of 6 states", len(salts))
	}
}

// Entries of a list that change places are not mistaken for each other.
func TestLastStateKnowsPlaces(t *testing.T) {
	h := hold(newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()}))
	pod := wiretest.Replica("set", 1)
	for i := range 3 {
		entry := metav1.ManagedFieldsEntry{Manager: fmt.Sprint("manager-", i), FieldsV1: &metav1.FieldsV1{}}
		entry.FieldsV1.SetRawString(strings.Repeat(string(rune('a'+i)), 200))
		pod.ManagedFields = append(pod.ManagedFields, entry)
	}
	for round := range 10 {
		pod.ResourceVersion = fmt.Sprint(round)
		n := len(pod.ManagedFields)
		pod.ManagedFields[round%n], pod.ManagedFields[(round+1)%n] = pod.ManagedFields[(round+1)%n], pod.ManagedFields[round%n]
		want, _ := stockProtobuf(reflect.TypeFor[corev1.Pod](), wiretest.Marshal(t, pod))
		if got := h.pod(t, Modified, pod); !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: got\n%+v, want\n%+v", round, got.ManagedFields, want.(*corev1.Pod).ManagedFields)
		}
	}
}

// A state takes over parts of the last one, and keeps neither the rest of it nor
// its text.
func TestLastStateIsLetGo(t *testing.T) {
	h := hold(newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()}))
	pod := wiretest.Replica("set", 1)
	for _, event := range []Event{Added, Modified} {
		old := h.pod(t, event, wiretest.Restarted(pod, 1))
		gone, text := weak.Make(old), weak.Make(unsafe.StringData(old.Status.Message))
		now := h.pod(t, Modified, wiretest.Restarted(pod, 2))
		if !samePointer(old.Spec.Containers, now.Spec.Containers) {
			t.Error("nothing was taken over")
		}
		old = nil
		wiretest.CollectUntil(t, func() bool { return gone.Value() == nil && text.Value() == nil })
		runtime.KeepAlive(now)
	}
}

// States of deleted objects are forgotten: at once if the delete is seen, otherwise
// when there are too many.
func TestLastStateForgets(t *testing.T) {
	h := hold(newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()}))
	for i := range 100 {
		h.pod(t, Added, wiretest.Replica("set", i))
		if i%2 == 0 {
			h.pod(t, Modified, wiretest.Restarted(wiretest.Replica("set", i), i))
		}
	}
	if n := h.lastStates.len(); n != 100 {
		t.Errorf("%d of 100 pods are remembered", n)
	}
	for i := range 30 {
		h.pod(t, Deleted, wiretest.Restarted(wiretest.Replica("set", i), i+1))
	}
	if n := h.lastStates.len(); n != 70 {
		t.Errorf("of 100 pods 30 were deleted, and %d are remembered", n)
	}
	if h.ForgetAbove(70); h.lastStates.len() != 70 {
		t.Error("what is not too many was forgotten")
	}
	if h.ForgetAbove(69); h.lastStates.len() != 0 {
		t.Errorf("%d pods are remembered", h.lastStates.len())
	}
}

// Objects that nobody holds are not remembered.
func TestLastStateOfNothing(t *testing.T) {
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()})
	raw := wiretest.Marshal(t, wiretest.Replica("set", 1))
	for _, event := range []Event{Standalone, Added, Modified, Deleted} {
		if _, err := d.DecodeAt(event, raw, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.DecodeAt(Standalone, raw, func(_, _ string) any { return nil }); err != nil {
		t.Fatal(err)
	}
	if n := d.lastStates.len(); n != 0 {
		t.Errorf("%d objects are remembered", n)
	}
}

// Private maps stay private from state to state.
func TestLastStatePrivateMaps(t *testing.T) {
	h := hold(newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()}))
	want := wiretest.Replica("set", 1).Labels
	for i := range 5 {
		pod := h.pod(t, Modified, wiretest.Restarted(wiretest.Replica("set", 1), i))
		if !reflect.DeepEqual(pod.Labels, want) {
			t.Fatalf("labels %v", pod.Labels)
		}
		pod.Labels["mine"], pod.Annotations["mine"] = "x", "y"
	}
}

// Many goroutines decode states of the same objects.
func TestLastStateConcurrently(t *testing.T) {
	h := hold(newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()}))
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for round := range 40 {
				for i := range 10 {
					pod := wiretest.Restarted(wiretest.Replica("set", i), round+g)
					want, _ := stockProtobuf(reflect.TypeFor[corev1.Pod](), wiretest.Marshal(t, pod))
					if got := h.pod(t, Event(round%4), pod); !reflect.DeepEqual(got, want) {
						t.Errorf("pod %d, state %d: got\n%+v, want\n%+v", i, round, got, want)
					}
				}
			}
		})
	}
	group.Wait()
}
