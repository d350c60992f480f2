package web

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

func TestParseQuery(t *testing.T) {
	for _, test := range []struct {
		text string
		want search
	}{
		{"", search{}},
		{"  , ", search{}},
		{"Web", search{words: []string{"web"}}},
		{`web "two Words"`, search{words: []string{"web", "two words"}}},
		{"app=web", search{labels: []string{"app=web"}}},
		{"app=web,tier!=db", search{labels: []string{"app=web", "tier!=db"}}},
		{"app=", search{labels: []string{"app="}}},
		{"!old", search{labels: []string{"!old"}}},
		{"tier in (web, api) x", search{words: []string{"x"}, labels: []string{"tier in (web, api)"}}},
		{"tier  notin(web)", search{labels: []string{"tier  notin(web)"}}},
		{"in", search{words: []string{"in"}}},
		{"kubernetes.io/arch=arm64", search{labels: []string{"kubernetes.io/arch=arm64"}}},
		{"status.phase!=Running", search{fields: []string{"status.phase!=Running"}, paths: []string{"status.phase"}}},
		{".reason", search{fields: []string{".reason"}, paths: []string{"reason"}}},
		{"!spec.nodeName", search{fields: []string{"!spec.nodeName"}, paths: []string{"spec.nodeName"}}},
		{"spec.replicas>=3", search{fields: []string{"spec.replicas>=3"}, paths: []string{"spec.replicas"}}},
		{
			"metadata.annotations['a b=c']=x y",
			search{words: []string{"y"}, fields: []string{"metadata.annotations['a b=c']=x"}, paths: []string{"metadata.annotations['a b=c']"}},
		},
	} {
		got, err := parseSearch(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(search{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q: want -, got +\n%s", test.text, diff)
		}
	}
}

func TestParseQueryErrors(t *testing.T) {
	for text, want := range map[string]string{
		`"open`:                    "a closing \" is missing",
		"tier in (a":               "a closing ) is missing",
		"=web":                     "a name is wanted",
		"!":                        "a name is wanted",
		"(":                        "a name is wanted",
		"spec.replicas>many":       "a number",
		".[":                       "",
		"spec..x=1":                "",
		strings.Repeat("a", 2_000): "2000 bytes",
	} {
		if _, err := parseSearch(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
}

// Whatever is typed is refused with an error or can be run.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"web app=web", `"a b" !x`, "tier in (a,b)", "status.phase!=Running spec.replicas>3", ".a['b'].c[*]=1", "a[=b", "in (", ".x in (y", "\x00=",
	} {
		f.Add(seed)
	}
	store := memory.New[*unstructured.Unstructured]()
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"app": "web"}}, "status": map[string]any{"phase": "Running"},
	}}
	if err := store.Put("default/a", object); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := parseSearch(text)
		if err != nil {
			return
		}
		if len(q.fields) != len(q.paths) {
			t.Fatalf("%q: %d fields, %d paths", text, len(q.fields), len(q.paths))
		}
		if _, _, err := find(store, q, ""); err != nil {
			t.Fatalf("%q was accepted and cannot be run: %v", text, err)
		}
		q.matches(tarn.Key("default/a"), object)
	})
}
