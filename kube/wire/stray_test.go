package wire

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// podSet is pods of one template that share memory in one of the possible ways.
type podSet struct {
	pool    *Pool
	decoder *Decoder // nil for those that share by value
	// again makes the nth pod once more, in the given state, and holds it.
	again func(n, state int) any
	mu    sync.Mutex
	held  map[string]any
}

func (h *podSet) get(key string) any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held[key]
}

const podSetSize = 10

// templated is a pod of a template, in a state.
func templated(n, state int) *corev1.Pod {
	pod := wiretest.Replica("set", n)
	controller := true
	pod.OwnerReferences[0].Controller = &controller
	return wiretest.Restarted(pod, state)
}

// podSets returns a set of pods of every kind. Their content is the same.
func podSets(t *testing.T) map[string]func() *podSet {
	unstructuredOf := func(pod *corev1.Pod) *unstructured.Unstructured {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
		if err != nil {
			t.Fatal(err)
		}
		return &unstructured.Unstructured{Object: content}
	}
	jsonOf := func(pod *corev1.Pod) []byte {
		raw, err := unstructuredOf(pod).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	build := func(make func(h *podSet, pod *corev1.Pod, held any) (any, error)) func() *podSet {
		return func() *podSet {
			h := &podSet{pool: NewPool(), held: map[string]any{}}
			h.again = func(n, state int) any {
				pod := templated(n, state)
				key := pod.Namespace + "/" + pod.Name
				object, err := make(h, pod, h.get(key))
				if err != nil {
					t.Fatal(err)
				}
				h.mu.Lock()
				defer h.mu.Unlock()
				h.held[key] = object
				return object
			}
			return h
		}
	}
	return map[string]func() *podSet{
		"protobuf": build(func(h *podSet, pod *corev1.Pod, _ any) (any, error) {
			if h.decoder == nil {
				h.decoder = newDecoder(t, reflect.TypeFor[*corev1.Pod](), Options{Pool: h.pool})
			}
			return h.decoder.ProtobufAt(Modified, wiretest.Marshal(t, pod), func(namespace, name string) any { return h.get(namespace + "/" + name) })
		}),
		"JSON": build(func(h *podSet, pod *corev1.Pod, _ any) (any, error) {
			if h.decoder == nil {
				h.decoder = newDecoder(t, reflect.TypeFor[*corev1.Pod](), Options{Pool: h.pool})
			}
			return h.decoder.JSON(jsonOf(pod))
		}),
		"unstructured": build(func(h *podSet, pod *corev1.Pod, _ any) (any, error) {
			if h.decoder == nil {
				h.decoder = newDecoder(t, reflect.TypeFor[*unstructured.Unstructured](), Options{Pool: h.pool})
			}
			return h.decoder.JSON(jsonOf(pod))
		}),
		"by value": build(func(h *podSet, pod *corev1.Pod, held any) (any, error) {
			return NewSharer(h.pool, Options{}).ShareLike(pod, held), nil
		}),
		"by value in place": build(func(h *podSet, pod *corev1.Pod, held any) (any, error) {
			return NewSharer(h.pool, Options{}).ShareOwn(pod, held), nil
		}),
		"by value, unstructured": build(func(h *podSet, pod *corev1.Pod, held any) (any, error) {
			return NewSharer(h.pool, Options{}).ShareLike(unstructuredOf(pod), held), nil
		}),
	}
}

// writes are mistakes that programs make with objects, by field.
var writes = map[string]struct {
	typed func(*corev1.Pod)
	free  func(map[string]any)
	// private says that no other object may see the write.
	private bool
}{
	"metadata.labels": {
		func(p *corev1.Pod) { p.Labels["seen"] = "yes" },
		func(o map[string]any) { metadataOf(o)["labels"].(map[string]any)["seen"] = "yes" }, true},
	"metadata.annotations": {
		func(p *corev1.Pod) { p.Annotations["seen"] = "yes" },
		func(o map[string]any) { metadataOf(o)["annotations"].(map[string]any)["seen"] = "yes" }, true},
	"metadata.ownerReferences": {
		func(p *corev1.Pod) { p.OwnerReferences[0].Name = "seen" },
		func(o map[string]any) {
			metadataOf(o)["ownerReferences"].([]any)[0].(map[string]any)["name"] = "seen"
		}, true},
	"metadata.ownerReferences.controller": {
		func(p *corev1.Pod) { *p.OwnerReferences[0].Controller = false },
		func(o map[string]any) {
			metadataOf(o)["ownerReferences"].([]any)[0].(map[string]any)["controller"] = false
		}, true},
	"spec.terminationGracePeriodSeconds": {
		func(p *corev1.Pod) { *p.Spec.TerminationGracePeriodSeconds = 7 }, nil, true},
	"status.startTime": {
		func(p *corev1.Pod) { p.Status.StartTime.Time = time.Unix(7, 0) }, nil, true},
	"spec.tolerations": {
		func(p *corev1.Pod) { p.Spec.Tolerations[0].Key = "seen" },
		func(o map[string]any) {
			o["spec"].(map[string]any)["tolerations"].([]any)[0].(map[string]any)["key"] = "seen"
		}, false},
	"spec.containers.env": {
		func(p *corev1.Pod) { slices.Reverse(p.Spec.Containers[0].Env) },
		func(o map[string]any) {
			container := o["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
			slices.Reverse(container["env"].([]any))
		}, false},
}

func metadataOf(object map[string]any) map[string]any { return object["metadata"].(map[string]any) }

// write makes the mistake, and says whether the object has the field.
func write(where string, object any) bool {
	w := writes[where]
	switch o := object.(type) {
	case *corev1.Pod:
		w.typed(o)
	case *unstructured.Unstructured:
		if w.free == nil {
			return false
		}
		w.free(o.Object)
	}
	return true
}

// asPod is an object as a pod, to compare it.
func asPod(t *testing.T, object any) *corev1.Pod {
	pod, ok := object.(*corev1.Pod)
	if u, untyped := object.(*unstructured.Unstructured); untyped {
		pod, ok = new(corev1.Pod), true
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, pod); err != nil {
			t.Fatal(err)
		}
	}
	if !ok {
		t.Fatalf("a %T", object)
	}
	pod = pod.DeepCopy()
	pod.TypeMeta = metav1.TypeMeta{}
	return pod
}

// damaged counts the pods that differ from what they were made of.
func (h *podSet) damaged(t *testing.T, state int) (n int) {
	t.Helper()
	for i := range podSetSize {
		want := asPod(t, templated(i, state))
		if !reflect.DeepEqual(asPod(t, h.get(want.Namespace+"/"+want.Name)), want) {
			n++
		}
	}
	return n
}

func eachWrite(t *testing.T, test func(t *testing.T, h *podSet, where string, victim any)) {
	for kind, create := range podSets(t) {
		for where := range writes {
			t.Run(kind+"/"+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := create()
					for state := range 3 { // until the decoder has learned what repeats
						for i := range podSetSize {
							h.again(i, state)
						}
					}
					third := templated(3, 0)
					victim := h.get(third.Namespace + "/" + third.Name)
					if write(where, victim) {
						test(t, h, where, victim)
					}
				})
			})
		}
	}
}

// A stray write to metadata, or to a number behind a pointer, affects one object;
// any other write affects only the objects that share the part.
func TestStrayWriteStaysSmall(t *testing.T) {
	eachWrite(t, func(t *testing.T, h *podSet, where string, _ any) {
		n := h.damaged(t, 2)
		if n == 0 || n > 1 && writes[where].private {
			t.Errorf("%d of %d pods are damaged", n, podSetSize)
		}
		// After a minute no new object with the same content gets the written part.
		time.Sleep(time.Minute)
		other := asPod(t, h.again(podSetSize, 2))
		if !reflect.DeepEqual(other, asPod(t, templated(podSetSize, 2))) {
			t.Errorf("a pod that came later is damaged")
		}
	})
}

// An update passes a stray write on for a minute at most.
func TestStrayWriteEndsWithAnUpdate(t *testing.T) {
	eachWrite(t, func(t *testing.T, h *podSet, where string, _ any) {
		for state := 3; state < 9; state++ {
			time.Sleep(10 * time.Second)
			for i := range podSetSize {
				h.again(i, state)
			}
		}
		if n := h.damaged(t, 8); n > 0 {
			t.Errorf("after updates for a minute, %d of %d pods are damaged", n, podSetSize)
		}
	})
}

// copied is a set of pods as a verifier sees a copy.
type copied struct {
	*podSet
	found []tarn.Damage
}

func (c *copied) All() iter.Seq2[tarn.Key, any] {
	c.mu.Lock()
	held := maps.Clone(c.held)
	c.mu.Unlock()
	return func(yield func(tarn.Key, any) bool) {
		for key, object := range held {
			if !yield(tarn.Key(key), object) {
				return
			}
		}
	}
}

func (c *copied) Repair(damaged []tarn.Damage) { c.found = append(c.found, damaged...) }

// A write to a shared part is found within ten minutes without any event, with all
// the objects that have it and the field.
func TestStrayWriteIsFoundBySweep(t *testing.T) {
	eachWrite(t, func(t *testing.T, h *podSet, where string, _ any) {
		if writes[where].private {
			return
		}
		damaged := h.damaged(t, 2)
		c := &copied{podSet: h}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Verifier[any]{Pool: h.pool, Decoder: func() *Decoder { return h.decoder }}.Run(ctx, c)
		}()
		time.Sleep(10 * time.Minute)
		cancel()
		<-done
		found := map[tarn.Key]bool{}
		for _, d := range c.found {
			found[d.Key] = true
			if len(d.Field) < len("spec") || where[:len("spec")] != d.Field[:len("spec")] {
				t.Errorf("%s: field %q, want %q or what leads there", d.Key, d.Field, where)
			}
		}
		if len(found) != damaged || h.pool.Stats().StrayWrites == 0 {
			t.Errorf("%d objects are damaged, %d were found: %v", damaged, len(found), c.found)
		}
		// A damaged part leaves the pool: later objects are right.
		if other := asPod(t, h.again(podSetSize, 2)); !reflect.DeepEqual(other, asPod(t, templated(podSetSize, 2))) {
			t.Errorf("a pod that came later is damaged")
		}
	})
}

// An update that finds a write to the previous state reports it with key and field,
// and says that it is repaired.
func TestStrayWriteIsFoundByAnUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := podSets(t)["protobuf"]()
		for i := range podSetSize {
			h.again(i, 0)
		}
		victim := h.again(3, 1).(*corev1.Pod)
		key := victim.Namespace + "/" + victim.Name
		victim.Spec.NodeName = "seen"
		victim.Spec.Containers[0].Image = "seen"
		// An update verifies what it takes over once it is a minute old. The verifier starts
		// after that minute, because its sweep would find the write too.
		time.Sleep(time.Minute)
		c := &copied{podSet: h}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Verifier[any]{Pool: h.pool, Decoder: func() *Decoder { return h.decoder }}.Run(ctx, c)
		}()
		synctest.Wait()
		if got := h.again(3, 2).(*corev1.Pod); got.Spec.NodeName == "seen" || got.Spec.Containers[0].Image == "seen" {
			t.Errorf("the update hands on node %q, image %q", got.Spec.NodeName, got.Spec.Containers[0].Image)
		}
		time.Sleep(verifyPeriod)
		cancel()
		<-done
		var fields []string
		for _, d := range c.found {
			if d.Key != tarn.Key(key) || !d.Repaired {
				t.Errorf("found %+v, want %s, repaired", d, key)
			}
			fields = append(fields, d.Field)
		}
		slices.Sort(fields)
		if want := []string{"spec.containers.image", "spec.nodeName"}; !slices.Equal(fields, want) {
			t.Errorf("fields %q, want %q", fields, want)
		}
	})
}

// Correct use of objects never looks like a write.
func TestNoStrayWrites(t *testing.T) {
	for kind, create := range podSets(t) {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := create()
				for state := range 20 {
					for i := range podSetSize {
						object := h.again(i, state)
						_ = fmt.Sprintf("%v", object)
						_ = asPod(t, object).String()
					}
					time.Sleep(30 * time.Second)
					h.pool.Sweep(time.Now())
				}
				h.pool.Verify()
				if stats := h.pool.Stats(); stats.StrayWrites != 0 || stats.Verified == 0 {
					t.Errorf("stats %+v", stats)
				}
				if n := h.damaged(t, 19); n > 0 {
					t.Errorf("%d of %d pods are not what they were made of", n, podSetSize)
				}
			})
		})
	}
}
