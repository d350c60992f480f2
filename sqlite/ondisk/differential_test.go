package ondisk

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/adapter"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/memory/query"
	"github.com/tarnproject/tarn/sqlite"
)

func one[T any](values ...T) *rapid.Generator[T] { return rapid.SampledFrom(values) }

// anyPod draws a pod, of few names and values, so that they meet.
func anyPod(rt *rapid.T) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	p.Namespace = one("a", "b").Draw(rt, "namespace")
	p.Name = fmt.Sprint("p", rapid.IntRange(0, 9).Draw(rt, "name"))
	p.UID, p.ResourceVersion = types.UID(p.Namespace+p.Name), fmt.Sprint(rapid.IntRange(1, 999).Draw(rt, "version"))
	p.Labels = rapid.MapOfN(one("app", "tier", "it's"), one("web", "db", `"`, ""), 0, 3).Draw(rt, "labels")
	if rapid.Bool().Draw(rt, "owned") {
		yes := rapid.Bool().Draw(rt, "controlled")
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "other", UID: "u1"}, {Kind: "ReplicaSet", Name: "web", UID: "u2", Controller: &yes}}
	}
	if rapid.Bool().Draw(rt, "terminating") {
		p.DeletionTimestamp = &metav1.Time{Time: metav1.Unix(1_700_000_000, 0).Time}
	}
	p.Spec.NodeName = one("", "node-1", "node-2").Draw(rt, "node")
	p.Spec.Priority = one(nil, new(int32)).Draw(rt, "priority")
	p.Status.Phase = one(corev1.PodRunning, corev1.PodPending, corev1.PodFailed, "").Draw(rt, "phase")
	p.Status.Reason = one("", "Evicted").Draw(rt, "reason")
	always := corev1.ContainerRestartPolicyAlways
	container := func(name string) corev1.Container {
		c := corev1.Container{Name: name, Image: one("x:1", "y:2").Draw(rt, "image"), RestartPolicy: one(nil, &always).Draw(rt, "sidecar")}
		if cpu := one("", "250m", "1", "1500u").Draw(rt, "cpu"); cpu != "" {
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("64Mi")}
		}
		return c
	}
	status := func(name string) corev1.ContainerStatus {
		s := corev1.ContainerStatus{Name: name, Ready: rapid.Bool().Draw(rt, "ready"), RestartCount: rapid.Int32Range(0, 5).Draw(rt, "restarts")}
		switch rapid.IntRange(0, 3).Draw(rt, "state") {
		case 0:
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		case 1:
			s.State.Terminated = &corev1.ContainerStateTerminated{Reason: one("", "Completed", "OOMKilled").Draw(rt, "died")}
		}
		return s
	}
	for i := range rapid.IntRange(0, 3).Draw(rt, "containers") {
		name := fmt.Sprint("c", i)
		p.Spec.Containers = append(p.Spec.Containers, container(name))
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status(name))
	}
	if rapid.Bool().Draw(rt, "init") {
		p.Spec.InitContainers = []corev1.Container{container("i")}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{status("i")}
	}
	if ready := one("", corev1.ConditionTrue, corev1.ConditionFalse).Draw(rt, "condition"); ready != "" {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: ready}}
	}
	return p
}

func asUnstructured(t testing.TB, object any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	must(t, err)
	return &unstructured.Unstructured{Object: content}
}

// originOf is of a server that nobody asks.
func originOf[T any](t testing.TB, resource string, kind string) kube.Origin {
	t.Helper()
	client, err := kube.NewClient(&rest.Config{Host: "http://localhost"})
	must(t, err)
	gv := schema.GroupVersionResource{Version: "v1", Resource: resource}
	return kube.OriginOf(client, kube.Collection{Resource: gv, Kind: gv.GroupVersion().WithKind(kind), Object: reflect.TypeFor[T]()})
}

// Columns are the same whether objects are typed or not.
func TestColumnsOfTypedAndUnstructured(t *testing.T) {
	typed, err := newCodec[*corev1.Pod](originOf[*corev1.Pod](t, "pods", "Pod"), settings{})
	must(t, err)
	plain, err := newCodec[*unstructured.Unstructured](originOf[*unstructured.Unstructured](t, "pods", "Pod"), settings{})
	must(t, err)
	if a, b := typed.Table(), plain.Table(); !reflect.DeepEqual(a, b) {
		t.Fatalf("the tables differ:\n%v\n%v", a, b)
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := anyPod(rt)
		raw, err := typed.Append(nil, p)
		must(t, err)
		a, err := typed.Row(p, raw)
		must(t, err)
		u := asUnstructured(t, p)
		if raw, err = plain.Append(nil, u); err != nil {
			t.Fatal(err)
		}
		b, err := plain.Row(u, raw)
		must(t, err)
		for i, c := range typed.columns.Columns() {
			if !reflect.DeepEqual(a.Values[i], b.Values[i]) {
				rt.Errorf("%s is %v typed and %v unstructured", c.Name, a.Values[i], b.Values[i])
			}
		}
		if !reflect.DeepEqual(a.Labels, b.Labels) && len(a.Labels)+len(b.Labels) > 0 {
			rt.Errorf("the labels are %v and %v", a.Labels, b.Labels)
		}
	})
}

// pair is a question, asked of the store in memory and of SQL.
type pair struct {
	fields, labels string
	where          string
}

// anyQuestion draws conditions that are combined by AND.
func anyQuestion(rt *rapid.T) (q pair) {
	var fields, labels []string
	where := []string{"1"}
	text := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	for _, f := range []struct {
		path, column string
		values       []string
	}{
		{"spec.nodeName", "node", []string{"node-1", "node-2", "node-3"}},
		{"status.phase", "phase", []string{"Running", "Pending", "Failed"}},
		{"metadata.namespace", "namespace", []string{"a", "b"}},
	} {
		value := one(f.values...).Draw(rt, f.column)
		switch rapid.IntRange(0, 4).Draw(rt, "about "+f.column) {
		case 0:
			fields, where = append(fields, f.path+"="+value), append(where, f.column+" = "+text(value))
		case 1:
			fields, where = append(fields, f.path+"!="+value), append(where, f.column+" IS NOT "+text(value))
		case 2:
			fields, where = append(fields, "!"+f.path), append(where, f.column+" IS NULL")
		}
	}
	if rapid.Bool().Draw(rt, "about priority") {
		fields, where = append(fields, "spec.priority>=0"), append(where, "priority >= 0")
	}
	switch rapid.IntRange(0, 3).Draw(rt, "about labels") {
	case 0:
		labels, where = append(labels, "app=web"), append(where, "id IN (SELECT id FROM pods_labels WHERE name = 'app' AND value = 'web')")
	case 1:
		labels, where = append(labels, "!tier"), append(where, "id NOT IN (SELECT id FROM pods_labels WHERE name = 'tier')")
	case 2:
		labels, where = append(labels, "tier in (web,db)"), append(where, "labels ->> 'tier' IN ('web', 'db')")
	}
	return pair{strings.Join(fields, ","), strings.Join(labels, ","), strings.Join(where, " AND ")}
}

// SQL finds what the store in memory finds, after any writes, changes and deletes.
func TestSQLAgainstMemory(t *testing.T) {
	of := originOf[*unstructured.Unstructured](t, "pods", "Pod")
	db, err := sqlite.Open(directory(t), sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	defer db.Close()
	front := memory.New[*unstructured.Unstructured]()
	sink, err := Sink[*unstructured.Unstructured](db, of)
	must(t, err)
	store := tarn.AdaptSink(adapter.Key{}, tarn.ReadStore[*unstructured.Unstructured](front), sink, tarn.Options[*unstructured.Unstructured]{})
	defer store.Close()
	rapid.Check(t, func(rt *rapid.T) {
		var gone []tarn.Change[*unstructured.Unstructured]
		for key, object := range front.All() {
			gone = append(gone, tarn.Change[*unstructured.Unstructured]{Type: tarn.Delete, Key: key, Object: object, Old: object})
		}
		must(t, store.Apply(gone, tarn.At("1")))
		for n := range rapid.IntRange(1, 4).Draw(rt, "batches") {
			must(t, store.Apply(anyBatch(rt, t, front), tarn.At(tarn.Version(fmt.Sprint(n+1)))))
			must(t, db.Flush())
		}
		for range 3 {
			q := anyQuestion(rt)
			asked := query.Where()
			if q.fields != "" {
				asked = asked.Fields(q.fields)
			}
			if q.labels != "" {
				asked = asked.Labels(q.labels)
			}
			page, err := front.Select(asked)
			must(t, err)
			var want, got []string
			for _, o := range page.Objects {
				raw, err := json.Marshal(o.Object)
				must(t, err)
				want = append(want, o.GetNamespace()+"/"+o.GetName()+" "+string(raw))
			}
			found, err := db.Query(t.Context(), "SELECT key, object FROM pods WHERE "+q.where, sqlite.Limits{})
			must(t, err)
			for _, row := range found.Rows {
				var object map[string]any
				must(t, json.Unmarshal([]byte(row[1].(string)), &object))
				raw, err := json.Marshal(object)
				must(t, err)
				got = append(got, row[0].(string)+" "+string(raw))
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				rt.Errorf("%s | %s finds\n%s\nSQL WHERE %s finds\n%s", q.fields, q.labels, strings.Join(want, "\n"), q.where, strings.Join(got, "\n"))
			}
		}
	})
}

// anyBatch draws changes that fit the content, each key once.
func anyBatch(rt *rapid.T, t testing.TB, front *memory.Store[*unstructured.Unstructured]) (changes []tarn.Change[*unstructured.Unstructured]) {
	seen := map[tarn.Key]bool{}
	for range rapid.IntRange(0, 12).Draw(rt, "changes") {
		p := anyPod(rt)
		key := tarn.Key(p.Namespace + "/" + p.Name)
		if seen[key] {
			continue
		}
		seen[key] = true
		old, there := front.Get(key)
		c := tarn.Change[*unstructured.Unstructured]{Type: tarn.Add, Key: key, Object: asUnstructured(t, p)}
		if there {
			c.Type, c.Old = tarn.Update, old
			if rapid.Bool().Draw(rt, "delete") {
				c.Type, c.Object = tarn.Delete, old
			}
		}
		changes = append(changes, c)
	}
	return changes
}

// Annotations of kubectl apply are not written, for all ways in which objects arrive.
func TestLastAppliedIsNotWritten(t *testing.T) {
	p := pod("a1", "node-1")
	p.Annotations = map[string]string{LastApplied: "topsecret", "kept": "yes"}
	for _, keep := range []bool{false, true} {
		typed, err := newCodec[*corev1.Pod](originOf[*corev1.Pod](t, "pods", "Pod"), settings{applied: kube.AppliedCopies(), lastApplied: keep})
		must(t, err)
		plain, err := newCodec[*unstructured.Unstructured](originOf[*unstructured.Unstructured](t, "pods", "Pod"), settings{applied: kube.AppliedCopies(), lastApplied: keep})
		must(t, err)
		a, err := typed.Append(nil, p)
		must(t, err)
		b, err := plain.Append(nil, asUnstructured(t, p))
		must(t, err)
		for _, raw := range [][]byte{a, b} {
			if got := strings.Contains(string(raw), "topsecret"); got != keep || !strings.Contains(string(raw), "kept") {
				t.Errorf("kept: %v, want %v in %q", got, keep, raw)
			}
		}
		row, err := typed.Row(p, a)
		must(t, err)
		metadata, err := row.Values[len(row.Values)-4].(sqlite.WideValue).Make()
		must(t, err)
		if got := strings.Contains(string(metadata), "topsecret"); got != keep {
			t.Errorf("SQL has %s", metadata)
		}
	}
	if p.Annotations[LastApplied] == "" {
		t.Error("the object itself was changed")
	}
}
