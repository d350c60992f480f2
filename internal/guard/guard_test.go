package guard

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeapi "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestMain(m *testing.M) {
	Prepare(reflect.TypeFor[resource.Quantity](), func(q any) { _ = q.(*resource.Quantity).String() })
	if name := os.Getenv("GUARD_TEST_WRITE"); name != "" {
		misbehave(name)
		os.Exit(0) // it must not come here
	}
	os.Exit(m.Run())
}

func pod(name string) *corev1.Pod {
	yes, grace, limit := true, int64(30), resource.MustParse("1.5Gi")
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.NewTime(time.Unix(1700000000, 0)),
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: &yes}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1", TerminationGracePeriodSeconds: &grace,
			Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}},
			Containers: []corev1.Container{
				{Name: "a", Image: "a:1", Args: []string{"-v", "--x"}, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}},
				{Name: "b", Image: "b:1", ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}}},
			},
		},
	}
}

func frozen[T any](t testing.TB, s *Session, key string, object T) T {
	t.Helper()
	got, err := s.Freeze(key, object)
	if err != nil {
		t.Fatal(err)
	}
	return got.(T)
}

func session(t testing.TB) *Session {
	t.Helper()
	if !Supported {
		t.Skip("this system has no memory that can be made read-only")
	}
	s, err := NewSession("pods")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// addresses are printed for pointers to numbers.
var addresses = regexp.MustCompile("0x[0-9a-f]+")

// What is frozen is the same object to every reader, also after collections that free
// everything that only frozen memory refers to.
func TestFrozenObjectsCanBeRead(t *testing.T) {
	s := session(t)
	var pods []*corev1.Pod
	for i := range 200 {
		pods = append(pods, frozen(t, s, fmt.Sprint("shop/", i), pod(fmt.Sprint("web-", i))))
		if i%50 == 0 {
			runtime.GC()
		}
	}
	for range 3 {
		runtime.GC()
		debug.FreeOSMemory()
	}
	for i, got := range pods {
		want := pod(fmt.Sprint("web-", i))
		_ = want.Spec.Volumes[0].EmptyDir.SizeLimit.String() // as the frozen one has it
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("pod %d is\n%+v, want\n%+v", i, got, want)
		}
		if g, w := addresses.ReplaceAllString(got.String(), ""), addresses.ReplaceAllString(want.String(), ""); g != w {
			t.Fatalf("pod %d is printed as\n%s, want\n%s", i, g, w)
		}
		if !reflect.DeepEqual(got.DeepCopy(), want.DeepCopy()) {
			t.Fatalf("the copy of pod %d differs", i)
		}
		a, err := json.Marshal(got)
		if b, _ := json.Marshal(want); err != nil || string(a) != string(b) {
			t.Fatalf("pod %d is %s in JSON, want %s: %v", i, a, b, err)
		}
		if got.Spec.Volumes[0].EmptyDir.SizeLimit.String() != "1536Mi" {
			t.Fatalf("the limit is %s", got.Spec.Volumes[0].EmptyDir.SizeLimit)
		}
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	_ = append(pods[0].Spec.Containers, corev1.Container{}) // copies
	if u := frozen(t, s, "x", &unstructured.Unstructured{Object: map[string]any{"kind": "Pod"}}); u.GetKind() != "Pod" {
		t.Error("an unstructured object cannot be read")
	}
	if number := frozen(t, s, "x", 7); number != 7 {
		t.Error("a number is another one")
	}
}

// Values without content leave no pointer into memory that the collector frees, and an
// object of any shape can be frozen.
func TestFrozenOddities(t *testing.T) {
	s := session(t)
	type odd struct {
		Text    string
		List    []string
		Nothing *struct{}
		Many    []struct{}
		Nil     []string
		Next    *odd
	}
	for i := range 300 {
		text := strings.Repeat("x", 1<<16)
		o := &odd{Text: text[i:i], List: make([]string, 0, 1000), Nothing: &struct{}{}, Many: make([]struct{}, 3)}
		for range i { // sizes that end anywhere in a page
			o = &odd{Next: o}
		}
		got := frozen(t, s, "odd", o)
		for got.Next != nil && i < maxDepth/2 {
			got = got.Next
		}
		if i < maxDepth/2 && (got.Text != "" || got.List == nil || cap(got.List) != 0 || got.Nothing == nil || len(got.Many) != 3 || got.Nil != nil) {
			t.Fatalf("it is %+v", got)
		}
		if uintptr(unsafe.Pointer(unsafe.StringData(got.Text))) != 0 {
			t.Fatal("an empty text points somewhere")
		}
	}
	runtime.GC()
	frozen(t, s, "empty", &struct{}{})
}

// writes are mistakes, by their names, each with the field that must be named.
var writes = map[string]struct {
	field string
	do    func(*corev1.Pod)
}{
	"struct":       {"spec.nodeName", func(p *corev1.Pod) { p.Spec.NodeName = "x" }},
	"metadata":     {"metadata.name", func(p *corev1.Pod) { p.Name = "x" }},
	"element":      {"spec.containers[1].image", func(p *corev1.Pod) { p.Spec.Containers[1].Image = "x" }},
	"nested":       {"spec.containers[1].readinessProbe.httpGet.port.StrVal", func(p *corev1.Pod) { p.Spec.Containers[1].ReadinessProbe.HTTPGet.Port.StrVal = "x" }},
	"scalar":       {"metadata.ownerReferences[0].controller", func(p *corev1.Pod) { *p.OwnerReferences[0].Controller = false }},
	"list of text": {"spec.containers[0].args[0]", func(p *corev1.Pod) { p.Spec.Containers[0].Args[0] = "x" }},
	"append": {"spec.containers[1]", func(p *corev1.Pod) {
		_ = append(p.Spec.Containers[:1], corev1.Container{Name: "x"})
	}},
	"pointer": {"spec.terminationGracePeriodSeconds", func(p *corev1.Pod) { *p.Spec.TerminationGracePeriodSeconds = 1 }},
}

// misbehave is what a child process does.
func misbehave(name string) {
	s, err := NewSession("pods")
	if err != nil {
		panic(err)
	}
	got, err := s.Freeze("shop/web-1", pod("web-1"))
	if err != nil {
		panic(err)
	}
	p := got.(*corev1.Pod)
	switch name {
	case "behind an interface":
		template(s, "shop/t").Raw.Object.(*corev1.Pod).Spec.Containers[0].Image = "x"
	case "list in an interface":
		template(s, "shop/t").Values.([]any)[0] = "x"
		s.mustBeUnchanged()
	case "map":
		p.Labels["app"] = "x"
		s.Run(make(chan struct{}))
	case "unstructured":
		got, err := s.Freeze("shop/web-2", &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"list": []any{"a"}}}})
		if err != nil {
			panic(err)
		}
		got.(*unstructured.Unstructured).Object["spec"].(map[string]any)["list"].([]any)[0] = "x"
		s.Run(make(chan struct{}))
	default:
		writes[name].do(p)
	}
}

// withInterfaces has what a definition's Go type may have: values behind interfaces.
type withInterfaces struct {
	Raw    runtimeapi.RawExtension
	Values any
	Reader fmt.Stringer
}

func template(s *Session, key string) *withInterfaces {
	got, err := s.Freeze(key, &withInterfaces{
		Raw: runtimeapi.RawExtension{Object: pod("web-9")}, Values: []any{"a", map[string]any{"b": "c"}}, Reader: 7 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	return got.(*withInterfaces)
}

// A caller that gives an object to a cache may change what is behind its interfaces
// afterwards. The frozen object does not change.
func TestFrozenInterfaces(t *testing.T) {
	s := session(t)
	given := &withInterfaces{Raw: runtimeapi.RawExtension{Object: pod("web-9")}, Values: []any{"a", map[string]any{"b": "c"}}, Reader: 7 * time.Second}
	got := frozen(t, s, "shop/t", given)
	runtime.GC()
	want := template(s, "shop/want")
	given.Raw.Object.(*corev1.Pod).Name = "x"
	given.Values.([]any)[1].(map[string]any)["b"] = "x"
	given.Values.([]any)[0] = "x"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v, want %+v", got, want)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// child runs a mistake in a process of its own.
func child(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GUARD_TEST_WRITE="+name, "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the process continued after the write:\n%s", out)
	}
	return string(out)
}

// A write ends the process at the line that writes, and the record says what it was.
func TestWritesStopTheProcess(t *testing.T) {
	session(t)
	for name, w := range writes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := child(t, name)
			if !strings.Contains(out, "guard.misbehave") || !strings.Contains(out, "guard_test.go:") {
				t.Errorf("the stack does not show who wrote:\n%s", out)
			}
			address := regexp.MustCompile(`addr=0x([0-9a-f]+)`).FindStringSubmatch(out)
			file := regexp.MustCompile(`--file (\S+) ADDRESS`).FindStringSubmatch(out)
			if address == nil || file == nil {
				t.Fatalf("it does not say where it wrote, or what to do:\n%s", out)
			}
			at, err := strconv.ParseUint(address[1], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ExplainFile(file[1], uintptr(at))
			if want := w.field + " of v1.Pod shop/web-1"; err != nil || got != want && !strings.HasPrefix(got, w.field+".") {
				t.Errorf("it is explained as %q (%v), want %q", got, err, want)
			}
		})
	}
}

// What is behind an interface is an object's too.
func TestWritesBehindInterfacesStopTheProcess(t *testing.T) {
	session(t)
	out := child(t, "behind an interface")
	address := regexp.MustCompile(`addr=0x([0-9a-f]+)`).FindStringSubmatch(out)
	file := regexp.MustCompile(`--file (\S+) ADDRESS`).FindStringSubmatch(out)
	if address == nil || file == nil {
		t.Fatalf("it does not say where it wrote:\n%s", out)
	}
	at, err := strconv.ParseUint(address[1], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ExplainFile(file[1], uintptr(at)); err != nil || !strings.HasPrefix(got, "Raw.Object.spec.containers[0].image of ") {
		t.Errorf("it is explained as %q: %v", got, err)
	}
}

// Maps cannot be in read-only memory: a write to one is found within a second.
func TestWritesToMapsAreFound(t *testing.T) {
	session(t)
	for name, want := range map[string]string{
		"map":                  "a program wrote to metadata.labels of v1.Pod shop/web-1 in the copy of pods",
		"list in an interface": "a program wrote to Values of guard.withInterfaces shop/t in the copy of pods",
		"unstructured":         "a program wrote to Object of unstructured.Unstructured shop/web-2 in the copy of pods",
	} {
		if out := child(t, name); !strings.Contains(out, want) {
			t.Errorf("%s: it says\n%s", name, out)
		}
	}
}

// Types of several packages have the same name, such as v1.Event, and other fields.
func TestTypesOfOneName(t *testing.T) {
	s := session(t)
	core := frozen(t, s, "shop/a", &corev1.Event{Reason: "x", Series: &corev1.EventSeries{Count: 1}})
	named := frozen(t, s, "shop/b", &eventsv1.Event{Reason: "x", Series: &eventsv1.EventSeries{Count: 1}})
	for want, at := range map[string]unsafe.Pointer{
		"reason of v1.Event shop/a":                  unsafe.Pointer(&core.Reason),
		"series.count of v1.Event shop/a":            unsafe.Pointer(&core.Series.Count),
		"note of v1.Event shop/b":                    unsafe.Pointer(&named.Note),
		"regarding.name of v1.Event shop/b":          unsafe.Pointer(&named.Regarding.Name),
		"series.lastObservedTime of v1.Event shop/b": unsafe.Pointer(&named.Series.LastObservedTime),
	} {
		if got, ok := Explain(uintptr(at)); !ok || got != want {
			t.Errorf("explained as %q, want %q", got, want)
		}
		if got, err := ExplainFile(s.log.file.Name(), uintptr(at)); err != nil || got != want {
			t.Errorf("by the file, explained as %q (%v), want %q", got, err, want)
		}
	}
}

// In a goroutine that asks for it, a write is a panic that names object and field.
func TestFaultsAreExplained(t *testing.T) {
	p := frozen(t, session(t), "shop/web-1", pod("web-1"))
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		message, ok := Fault(recover())
		if want := "guard mode: a write to spec.nodeName of v1.Pod shop/web-1"; !ok || !strings.HasPrefix(message, want) {
			t.Errorf("the panic says %q, want %q", message, want)
		}
		if _, ok := Fault(fmt.Errorf("another")); ok {
			t.Error("any error is a fault")
		}
		if _, ok := Explain(1); ok {
			t.Error("any address is an object's")
		}
	}()
	p.Spec.NodeName = "x"
}

// The newest record is found without being named.
func TestLastFile(t *testing.T) {
	session(t)
	t.Setenv("TMPDIR", t.TempDir())
	if path, err := LastFile(); err == nil {
		t.Errorf("found %s where there is none", path)
	}
	child(t, "struct")
	if err := os.WriteFile(os.TempDir()+"/"+filePrefix+"1-2.json", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := LastFile()
	if err != nil || !strings.HasSuffix(path, "1-2.json") {
		t.Errorf("found %s: %v", path, err)
	}
	if _, err := ExplainFile(path, 1); err == nil || !strings.Contains(err.Error(), "is not the address of an object") {
		t.Errorf("an empty record explains: %v", err)
	}
}
