package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/fieldpath"
	"github.com/tarnproject/tarn/internal/render"
)

// thing is a custom resource, nested as deep as a server lets it be.
func thing(name string, depth, keys int) *unstructured.Unstructured {
	level := make(map[string]any, keys)
	for i := range keys {
		level[fmt.Sprintf("k%05d", i)] = int64(i)
	}
	for range depth {
		level = map[string]any{"a": level}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"namespace": "default", "name": name}, "spec": level,
	}}
}

// Indented as deep as it is nested, this object would take 70 MB. Whatever prints it
// prints all of it, or says that it does not.
func TestDeepObjects(t *testing.T) {
	const depth, keys, last = 3000, 3000, `"k02999":`
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if err := r.server.Register(apiserver.Kind{Group: "example.com", Version: "v1", Kind: "Thing"}); err != nil {
			t.Fatal(err)
		}
		r.put(thing("deep", depth, keys))
		for _, args := range []string{
			"get thing/deep -o yaml", "get things -o yaml", "get thing/deep -o json", "get things -o json",
			"query things -o yaml", "query things -o json", "query things --where spec.a.a -o yaml",
		} {
			got := r.run(strings.Fields(args)...)
			all := strings.Contains(strings.ReplaceAll(got.out, " ", ""), last)
			if got.code != exitOK || len(got.out) > 2<<20 || !all {
				t.Errorf("%s: code %d, %d bytes, all of it: %v; %.200s", args, got.code, len(got.out), all, got.err)
			}
		}
		object := &unstructured.Unstructured{}
		if text := r.run("get", "thing/deep", "-o", "json").out; json.Unmarshal([]byte(text), &object.Object) != nil || object.GetName() != "deep" {
			t.Error("this is no JSON")
		}
		if _, err := yaml.YAMLToJSON([]byte(r.run("get", "thing/deep", "-o", "yaml").out)); err != nil {
			t.Error(err)
		}
		for _, args := range []string{
			"get things", "get things -o wide", "get things --sort-by .spec.a", "query things", "query things --where spec.a", "query things --where spec.b",
			"get things -o name", "verify things",
		} {
			if got := r.run(strings.Fields(args)...); got.code != exitOK || len(got.out) > 1<<20 || len(got.err) > 10_000 {
				t.Errorf("%s: code %d, %d and %d bytes: %.200s", args, got.code, len(got.out), len(got.err), got.err)
			}
		}
		got := r.during(func(*lockedBuffer) {
			time.Sleep(time.Second)
			r.put(thing("deep", depth, keys+1))
			time.Sleep(time.Second)
			r.put(thing("deep", 0, keys))
			time.Sleep(time.Second)
		}, "watch", "things", "--diff")
		if lines := strings.Count(got.out, "\n"); lines > mostDifferences+20 || len(got.out) > 1<<20 || !strings.Contains(got.out, "… and more fields: tarn get -o yaml") {
			t.Errorf("%d lines, %d bytes", lines, len(got.out))
		}
	})
}

// A value that is as long as an object may be does not make every row as long.
func TestWideCells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = 100_000
		pods := []*corev1.Pod{pod("web-0", corev1.PodRunning)}
		pods[0].Status.Reason = strings.Repeat("r", long)
		for i := range 500 {
			pods = append(pods, pod(fmt.Sprint("web-", i+1), corev1.PodRunning))
		}
		r := newRig(t)
		for _, p := range pods {
			r.put(p)
		}
		for args, want := range map[string]struct {
			note  string
			whole bool
		}{
			"get pods":                            {"Cells are cut after", false},
			"query pods --where status.reason!=x": {"Cells are cut after", false},
			"get pods -o custom-columns=NAME:.metadata.name,WHY:.status.reason": {"", true},
			"get pods -o jsonpath={.items[*].status.reason}":                    {"", true},
		} {
			got := r.run(strings.Fields(args)...)
			whole := strings.Contains(got.out, pods[0].Status.Reason)
			if got.code != exitOK || len(got.out) > 2<<20 || !strings.Contains(got.err, want.note) || whole != want.whole {
				t.Errorf("%s: code %d, %d bytes, the whole of it: %v; %s", args, got.code, len(got.out), whole, got.err)
			}
		}
		watched := r.during(func(*lockedBuffer) { time.Sleep(time.Second) }, "watch", "pods")
		if strings.Contains(watched.out, strings.Repeat("r", widestCell+1)) {
			t.Error("watch prints the whole of it")
		}
	})
}

// A server's answer without a kind is not repeated: it may hold a Secret.
func TestAnswerWithoutAKind(t *testing.T) {
	_, _, err := parseObjects([]byte(`{"data":{"password":"hunter2"}}`))
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "has no kind") {
		t.Errorf("the error is %v", err)
	}
}

// FuzzTables prints any object as a table, in custom columns, and as changes.
func FuzzTables(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","ownerReferences":[{"kind":"x"}]},"spec":{"a":["b",{"c":null}]}}`), "spec.a")
	f.Add([]byte(`{"metadata":{"name":["a"],"creationTimestamp":1},"spec":"`+strings.Repeat("x", 3*widestCell)+`"}`), "spec")
	f.Add([]byte(`{"metadata":{"name":"a\u001b[2J"},"spec":{"a":{"b":{"c":{}}}}}`), "spec.a[*].b")
	f.Fuzz(func(t *testing.T, text []byte, path string) {
		object := &unstructured.Unstructured{}
		field, err := fieldpath.Parse(path)
		if json.Unmarshal(text, &object.Object) != nil || object.Object == nil || err != nil {
			return
		}
		var out, errOut lockedBuffer
		a := &app{out: &out, errOut: &errOut}
		found := &answer{resource: mirror.Resource{Kind: "Thing"}, question: question{fields: []*fieldpath.Path{field}}}
		for range 20 {
			found.Objects = append(found.Objects, object)
		}
		tables := []*shownTable{{found.table(), found.resource}}
		a.cutCells(tables)
		if err := (&output{}).printTables(a.out, tables, false, false); err != nil {
			t.Fatal(err)
		}
		if columns := len(tables[0].ColumnDefinitions); len(out.String()) > 21*columns*5*widestCell {
			t.Errorf("%d bytes", len(out.String()))
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("an escape code reaches the terminal: %q", out.String())
		}
		for _, line := range differences(object.Object, map[string]any{"spec": path}) {
			if text := line.Render(false); len(text) > 10*longestValue+2*render.MaxPath*4 || strings.ContainsAny(text, "\x1b\n") {
				t.Errorf("%d bytes: %.200q", len(text), text)
			}
		}
	})
}
