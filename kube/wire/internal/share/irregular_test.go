package share_test

//lint:file-ignore U1000 a field that is only there is what is tested

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/share"
)

// TestShareLeavesAlone: values that are not plain data come back unchanged.
func TestShareLeavesAlone(t *testing.T) {
	type locked struct {
		mu   sync.Mutex
		Text string
	}
	type calling struct {
		Text string
		Call func()
	}
	type noCopy struct {
		_     [0]sync.Mutex
		State struct{ guard [0]sync.Mutex }
		Text  string
	}
	var nilPod *corev1.Pod
	for _, object := range []any{
		nil, 1, "text", []string{"a"}, map[string]string{"a": "b"}, nilPod,
		&locked{Text: "text"}, &calling{Text: "text"}, &noCopy{Text: "text"}, &struct{ C chan int }{}, new(int),
	} {
		sharer := share.New(pool.New(), pool.Options{})
		sharer.Share(object)
		if got := sharer.Share(object); !reflect.DeepEqual(got, object) || fmt.Sprintf("%p", got) != fmt.Sprintf("%p", object) {
			t.Errorf("%T came back as %T", object, got)
		}
	}
	if got := share.New(nil, pool.Options{}).Share(somePod("web", 1)); !reflect.DeepEqual(got, somePod("web", 1)) {
		t.Error("without a pool, what comes back is different")
	}
}

// TestShareAround: shareable parts are shared beside parts that are not.
func TestShareAround(t *testing.T) {
	type inner struct{ Text string }
	type object struct {
		Parts  []inner
		Object any
		Opaque []any
		Lock   *sync.Mutex
		Call   map[string]func()
		secret *inner
		list   []inner
	}
	secret, list, lock := &inner{"secret"}, []inner{{"list"}}, &sync.Mutex{}
	fresh := func() *object {
		return &object{
			Parts: []inner{{strings.Clone("a part")}}, Object: inner{"x"}, Opaque: []any{inner{"y"}},
			Lock: lock, Call: map[string]func(){"f": nil}, secret: secret, list: list[:1:1],
		}
	}
	sharer := share.New(pool.New(), pool.Options{})
	a, b := sharer.Share(fresh()).(*object), sharer.Share(fresh()).(*object)
	if !reflect.DeepEqual(a, fresh()) || !reflect.DeepEqual(b, fresh()) {
		t.Error("the content is different")
	}
	if &a.Parts[0] != &b.Parts[0] {
		t.Error("equal parts are not shared")
	}
	if b.secret != secret || b.Lock != lock || &b.list[0] != &list[0] {
		t.Error("what only its owner understands was replaced")
	}
	if &a.Opaque[0] == &b.Opaque[0] {
		t.Error("a part with something unknown in it is shared")
	}
}

// TestShareCycles: values that contain themselves are left alone, and nothing
// hangs.
func TestShareCycles(t *testing.T) {
	type ring struct {
		Text        string
		Left, Right *ring
		All         []*ring
		Names       map[string]*ring
	}
	r := &ring{Text: "round"}
	r.Left, r.Right, r.All, r.Names = r, r, []*ring{r, r}, map[string]*ring{"r": r}
	sharer := share.New(pool.New(), pool.Options{})
	got := sharer.Share(r).(*ring)
	if got.Text != "round" || got.Left == nil || got.Left.Left == nil {
		t.Errorf("got %v", got.Text)
	}

	tree := map[string]any{"a": "b"}
	tree["self"] = tree
	if got := sharer.Share(tree).(map[string]any); got["a"] != "b" {
		t.Error("got another tree")
	}

	// What is deep but ends is equal.
	var deep any = "end"
	for range 5000 {
		deep = map[string]any{"down": deep}
	}
	got2 := sharer.Share(map[string]any{"spec": deep})
	if !reflect.DeepEqual(got2, map[string]any{"spec": deep}) {
		t.Error("a deep tree is different")
	}
}

// TestShareGivesUp: lookups of parts that never repeat pause soon, and resume when
// they begin to repeat.
func TestShareGivesUp(t *testing.T) {
	parts := pool.New()
	sharer := share.New(parts, pool.Options{})
	lookups := func() uint64 { s := parts.Stats(); return s.Hits + s.Misses }
	config := func(n int) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("config-", n)},
			Data:       map[string]string{"a long enough key to be pooled, if it were": strings.Repeat(fmt.Sprint("data-", n), 20)},
		}
	}
	for n := range 100 {
		sharer.Share(config(n))
	}
	before := lookups()
	for n := range 1000 {
		sharer.Share(config(100 + n))
	}
	if n := lookups() - before; n > 200 {
		t.Errorf("1000 objects with nothing in common: %d lookups", n)
	}
	var found int
	var last map[string]string
	for n := range 4000 {
		object := config(7)
		object.Name = fmt.Sprint("another-", n)
		data := sharer.Share(object).(*corev1.ConfigMap).Data
		if last != nil && reflect.ValueOf(data).UnsafePointer() == reflect.ValueOf(last).UnsafePointer() {
			found++
		}
		last = data
	}
	if found < 2000 {
		t.Errorf("of 4000 equal ones, %d were found", found)
	}
}

// TestShareLetsGo: neither the pool nor an idle sharer keeps a part that no object
// has.
func TestShareLetsGo(t *testing.T) {
	parts := pool.New()
	sharer := share.New(parts, pool.Options{})
	for n := range 3000 {
		sharer.Share(somePod(fmt.Sprint("owner-", n/2), n))
	}
	for tries := 0; parts.Stats().Parts > 0; tries++ {
		if tries == 100 {
			t.Fatalf("the pool still has %+v", parts.Stats())
		}
		runtime.GC()
		parts.Collect()
	}
	runtime.KeepAlive(sharer)
}
