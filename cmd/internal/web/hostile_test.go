package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// thing is a custom resource of any content, nested as deep as a server lets it be.
func thing(name string, depth, keys int, status map[string]any) *unstructured.Unstructured {
	level := make(map[string]any, keys)
	for i := range keys {
		level[fmt.Sprintf("k%05d", i)] = int64(i)
	}
	for range depth {
		level = map[string]any{"a": level}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"namespace": "default", "name": name},
		"spec":     level, "status": status,
	}}
}

// An object that would fill gigabytes if it were indented as deep as it is nested is
// shown in part, says so, and can be had whole.
func TestHostileObject(t *testing.T) {
	r := newRig(t, rigOptions{kinds: []apiserver.Kind{{Group: "example.com", Version: "v1", Kind: "Thing", NoStatus: true}}})
	r.put(thing("deep", 3000, 10_000, map[string]any{"phase": strings.Repeat("long ", 20_000)}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)

	stream := r.follow("/api/events?object=things.example.com/default/deep")
	state := event[objectState](stream, "object")
	if len(state.Lines) == 0 || state.Shortened < 2 || len(state.Status) > maxCell+len("…") {
		t.Errorf("%d lines, %d are left out, %d values are shortened, the status has %d bytes", len(state.Lines), state.More, state.Shortened, len(state.Status))
	}
	r.put(thing("deep", 3000, 10_001, nil))
	if state := event[objectState](stream, "object"); len(state.Edits) != 3 { // the generation too
		t.Errorf("the edits are %+v", state.Edits)
	}
	wide := thing("deep", 0, 10_000, nil)
	r.put(wide)
	if state := event[objectState](stream, "object"); len(state.Edits) != maxEdits || !state.MoreEdits {
		t.Errorf("%d edits, more: %v", len(state.Edits), state.MoreEdits)
	}
	stream.close()

	r.put(thing("deep", 3000, 10_000, nil))
	whole := get[objectAnswer](r, "/api/objects/things.example.com/default/deep")
	if content, err := json.Marshal(whole.Object); err != nil || !strings.Contains(string(content), `"k09999":9999`) {
		t.Errorf("not all is there: %d bytes, %v", len(content), err)
	}
	answer := r.ask("/api/objects/things.example.com/default/deep?as=yaml")
	if text := answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(text, `"k09999":9999`) || len(text) > 1<<20 {
		t.Errorf("%d, %d bytes of YAML", answer.Code, len(text))
	}
	if rows := get[rowsAnswer](r, "/api/tables/things.example.com"); len(rows.Rows) != 1 {
		t.Errorf("the rows are %+v", rows.Rows)
	}

	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 400 {
		t.Errorf("all this took %d MiB", took)
	} else {
		t.Logf("all this took %d MiB", took)
	}
}

// An object may have any number of owners.
func TestManyOwners(t *testing.T) {
	r := newRig(t, rigOptions{kinds: []apiserver.Kind{{Group: "example.com", Version: "v1", Kind: "Thing", NoStatus: true}}})
	owned := thing("owned", 0, 0, nil)
	var owners []any
	for i := range 500 {
		owners = append(owners, map[string]any{
			"apiVersion": "v1", "kind": "Pod", "name": fmt.Sprintf("%s-%d", strings.Repeat("x", 2000), i), "uid": fmt.Sprint("uid-", i),
		})
	}
	owned.Object["metadata"].(map[string]any)["ownerReferences"] = owners
	r.put(owned)
	found := get[objectAnswer](r, "/api/objects/things.example.com/default/owned")
	if len(found.Owners) != maxRelated || found.MoreOwners != 500-maxRelated || len(found.Owners[0].Name) > maxCell+len("…") {
		t.Errorf("%d owners and %d more, one with a name of %d bytes", len(found.Owners), found.MoreOwners, len(found.Owners[0].Name))
	}
}

// FuzzCells shows any object in the columns of every resource.
func FuzzCells(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","deletionTimestamp":1},"status":{"phase":["x"],"conditions":[{"type":"Ready","status":"true"},1],"containerStatuses":[{"state":{"waiting":{"reason":"y"}},"ready":true},null]}}`))
	f.Add([]byte(`{"metadata":[],"spec":{"replicas":"three","containers":{}},"status":{"conditions":{},"phase":{"a":{"b":["c"]}}},"data":[]}`))
	f.Add([]byte(`{"status":{"phase":"` + strings.Repeat("é", 2*maxCell) + `"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		object := &unstructured.Unstructured{}
		if json.Unmarshal(text, &object.Object) != nil || object.Object == nil {
			return
		}
		for name := range ownColumns {
			for _, c := range ownColumns[name] {
				if cell := c.cell(object.Object); len(cell) > maxCell+len("…") {
					t.Errorf("%s of %s has %d bytes", c.Name, name, len(cell))
				}
			}
		}
		for _, c := range columnsOf(mirror.Resource{Namespaced: true}) {
			if cell := c.cell(object.Object); len(cell) > maxCell+len("…") {
				t.Errorf("%s has %d bytes", c.Name, len(cell))
			}
		}
		if shown, _ := mirror.HideValues(object); shown.Object == nil {
			t.Error("nothing is left of it")
		}
	})
}
