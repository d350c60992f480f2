package cli

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/memory"
)

// queryRig has four pods in two namespaces, which came one after the other, a
// Secret, and a kind that has no Go type.
func queryRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, secret("login", "hunter2"))
	for i, p := range []struct {
		namespace, name, node, image string
		phase                        corev1.PodPhase
	}{
		{"default", "web-1", "node-1", "nginx:1", corev1.PodRunning},
		{"default", "web-2", "node-2", "nginx:2", corev1.PodPending},
		{"default", "db-0", "node-1", "postgres:18", corev1.PodRunning},
		{"shop", "web-9", "", "nginx:2", corev1.PodPending},
	} {
		made := pod(p.name, p.phase)
		made.Namespace, made.Spec.NodeName, made.Spec.Containers[0].Image = p.namespace, p.node, p.image
		made.Labels["app"], _, _ = strings.Cut(p.name, "-")
		made.Spec.Priority = new(int32(10 * (i % 2)))
		made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: made.Labels["app"], UID: "1"}}
		r.put(made)
		time.Sleep(time.Minute)
	}
	if err := r.server.Register(apiserver.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}); err != nil {
		t.Fatal(err)
	}
	r.put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "default", "name": "w"},
		"spec": map[string]any{"colour": "red", "parts": []any{map[string]any{"size": int64(3)}}},
	}})
	return r
}

// TestQuery shows what people see: read testdata/query.txt. Words that have a
// space in them are in quotes.
func TestQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := queryRig(t)
		var b strings.Builder
		for line := range strings.Lines(`query pods
query pods -A --where status.phase!=Running
query po -A -l app=web --field-selector spec.nodeName=node-1
query pods -A -l 'app in (web,db)' --where 'spec.nodeName in (node-1,node-2),spec.priority>5'
query pods -A --where '!spec.nodeName'
query pods -A --where spec.nodeName --where 'spec.containers[*].image notin (nginx:1,nginx:2)'
query pods -A --where 'metadata.labels[app]=db' --show-labels
query pods -A --sort-by -spec.priority,metadata.name
query pods -A --sort-by {.status.phase} --sort-by -metadata.creationTimestamp --no-headers
query pods -A --where metadata.name=web-9 -o wide
query pods -A --where status.phase=Failed
query pods --where status.phase=Failed
query pods,widgets
query widgets --where spec.parts[0].size>=3
query pods -A --sort-by -metadata.name --limit 3 -o name
query pods -A --where spec.nodeName=node-2 -o yaml
query pods -A -o jsonpath={.items[*].metadata.name}
query pods -A -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName
query pods -A --limit 1 -o jsonpath={.items[*].metadata.name}:{.metadata.continue}
query pods -A --count
query pods,widgets -A --where metadata.name=w --count
query secrets --where data.password
query secrets -o jsonpath={.items[*].data}
query secrets -o jsonpath={.items[*].data} --show-secrets
query pods -A --where spec.nodeName=node-1 --explain
query pods -A -l app=web --where spec.nodeName=node-1 --index spec.nodeName --explain
query pods --where spec.nodeName=node-1,status.phase=Running --index spec.nodeName,status.phase --sort-by -metadata.name --limit 1 --explain
query pods,widgets -A -l app=web --index metadata.labels[app] --explain
query widgets --where spec.color=red
query widgets --where '!spec.paused'
query widgets --where spec.colour=red,!spec.paused --count
`) {
			line = strings.TrimSpace(line)
			b.WriteString("$ tarn " + line + "\n" + r.run(words(t, line)...).String())
			if !strings.HasSuffix(b.String(), "\n") {
				b.WriteString("\n")
			}
			b.WriteString("\n")
		}
		golden(t, "query", scrub(b.String()))
	})
}

// words splits a command line as a shell does.
func words(t *testing.T, line string) []string {
	t.Helper()
	var all []string
	for _, word := range regexp.MustCompile(`(?:[^\s']|'[^']*')+`).FindAllString(line, -1) {
		all = append(all, strings.ReplaceAll(word, "'", ""))
	}
	return all
}

// Pages joined together are the whole, in its order, whatever comes and goes in
// between.
func TestQueryPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 25 {
			p := pod(fmt.Sprintf("p-%02d", i), corev1.PodRunning)
			p.Spec.Priority = new(int32(i % 4))
			r.put(p)
		}
		args := []string{"query", "pods", "--sort-by", "-spec.priority", "-o", "name"}
		whole := r.run(args...)
		more := regexp.MustCompile(`^There is more: --continue (pods\.\S+)\n$`)
		var joined, token string
		for pages := 0; ; pages++ {
			page := r.run(append(args, "--limit", "7", "--continue", token)...)
			joined += page.out
			next := more.FindStringSubmatch(page.err)
			if next == nil {
				if pages != 3 || page.err != "" {
					t.Errorf("after %d pages it says %q", pages, page.err)
				}
				break
			}
			token = next[1]
			first := strings.TrimPrefix(strings.SplitN(page.out, "\n", 2)[0], "pod/")
			r.delete(pod(first, corev1.PodRunning)) // it was given, and shifts nothing
		}
		if joined != whole.out || strings.Count(joined, "\n") != 25 {
			t.Errorf("the pages are\n%s\nthe whole is\n%s", joined, whole.out)
		}
	})
}

func TestQueryMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := queryRig(t)
		page := r.run("query", "pods", "--limit", "1", "-o", "jsonpath={.metadata.continue}")
		token := page.out
		if !strings.HasPrefix(token, "pods.") {
			t.Fatal(page)
		}
		for _, test := range []struct {
			line  string
			code  int
			words []string
		}{
			{"query", 2, []string{"say which resources", "tarn query pods"}},
			{"query podz", 1, []string{`no resource "podz"`, "did you mean pods?"}},
			{"query pods --where status.fase=Running", 2, []string{`status of a Pod has no "fase"`, `the nearest is "status.phase"`}},
			{"query pods --field-selector spec.nodname=x", 2, []string{`the nearest is "spec.nodeName"`}},
			{"query pods --sort-by -metadata.nam", 2, []string{`the nearest is "metadata.name"`}},
			{"query pods --index sepc.nodeName", 2, []string{`the nearest is "spec"`}},
			{"query widgets --where metadata.nam=w", 2, []string{`metadata of a Widget has no "nam"`, `the nearest is "metadata.name"`}},
			{"query pods,widgets --where spec.colour=red", 2, []string{"colour", "spec of a Pod"}},
			{"query pods --where =", 2, []string{"--where", "expected a name", "spec.nodeName=node-1"}},
			{"query pods --where 'a b'", 2, []string{"--where", `expected an operator`, "in, notin"}},
			{"query pods --where 'a in (b'", 2, []string{"--where", "a comma or )"}},
			{"query pods --where spec.priority>high", 2, []string{"> needs a number", `"high"`}},
			{"query pods --where spec[", 2, []string{"--where", "spec["}},
			{"query pods --field-selector =x", 2, []string{"--field-selector", "expected a name"}},
			{"query pods -l =", 2, []string{"--selector", "app=web"}},
			{"query pods --sort-by [", 2, []string{"--sort-by [", "metadata.creationTimestamp"}},
			{"query pods --sort-by spec", 2, []string{"spec of", "an object or a list, which has no order"}},
			{"query pods --index -spec.nodeName", 2, []string{"--index", "has no order"}},
			{"query pods --index spec.containers[*].image,metadata.finalizers[*]", 2, []string{"--index", "make two indexes"}},
			{"query pods --index spec.nodeName --index spec.nodeName", 2, []string{"--index", "spec.nodeName"}},
			{"query pods --limit -1", 2, []string{"--limit is a number from 1 on", "-1"}},
			{"query pods --timeout 0s", 2, []string{"--timeout is a time such as 10m"}},
			{"query pods --count --explain", 2, []string{"leave one out"}},
			{"query pods --count --limit 3", 2, []string{"--count counts all"}},
			{"query pods --count -o json", 2, []string{"--count prints no objects: leave out -o json"}},
			{"query pods --explain --continue x", 2, []string{"--explain", "leave out --continue"}},
			{"query pods -o yml", 2, []string{`-o cannot be "yml"`, "yaml"}},
			{"query pods --continue nonsense", 2, []string{"the continue token is damaged", "first page again"}},
			{"query pods --continue " + token[:len(token)-3], 2, []string{"the continue token is damaged"}},
			{"query pods --continue " + token + " --where status.phase=Running", 2, []string{"the continue token belongs to another query"}},
			{"query pods --continue " + token + " --sort-by metadata.name", 2, []string{"the continue token belongs to another query"}},
			{"query pods --continue " + token + " -n shop", 2, []string{"the continue token belongs to another query"}},
			{"query services --continue " + token, 2, []string{"the token is of a query for pods, not for services"}},
			{"query pods,services --continue " + token, 2, []string{"--continue is for one resource, and 2 are named"}},
		} {
			if err := r.run(words(t, test.line)...).check(test.code, test.words...); err != nil {
				t.Errorf("%s: %v", test.line, err)
			}
		}
	})
}

// A server that is newer than the program has fields which its Go types have not.
func TestQueryKnowsWhatObjectsHave(t *testing.T) {
	store := memory.New[mirror.Object]()
	object := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{}, "novel": map[string]any{"a": "b"}}}
	if err := store.Put("default/c", object); err != nil {
		t.Fatal(err)
	}
	configMaps := mirror.Resource{GVR: corev1.SchemeGroupVersion.WithResource("configmaps"), Kind: "ConfigMap"}
	for selector, right := range map[string]bool{"data.x=y": true, "binaryData.x": true, "novel.a=b": true, "novel.b=b": false, "dta": false} {
		asked, err := (&queryOptions{where: []string{selector}, timeout: 1}).question()
		if err != nil {
			t.Fatal(err)
		}
		err = newRig(t).app(nil, nil).checkFields(store.Snapshot(), &answer{resource: configMaps, question: asked})
		if right != (err == nil) {
			t.Errorf("%s: %v", selector, err)
		}
	}
}

func TestQueryForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := queryRig(t)
		r.intercept = refuse("pods", http.StatusForbidden, "Forbidden", `pods is forbidden: User "ops" cannot list resource "pods"`)
		if err := r.run("query", "pods").check(1, `User "ops" cannot list`); err != nil {
			t.Error(err)
		}
		if err := r.run("query", "pods", "-A", "--timeout", "1h").check(1, `User "ops" cannot list`, "grant list and watch"); err != nil {
			t.Error(err)
		}
		got := r.run("query", "pods,widgets", "-o", "name")
		if got.code != 1 || got.out != "widget.example.com/w\n" || !strings.Contains(got.err, `User "ops" cannot list`) {
			t.Errorf("of two resources, one forbidden:\n%s", got)
		}
		r.intercept = refuse("pods", http.StatusInternalServerError, "InternalError", "out of order")
		if err := r.run("query", "pods", "--timeout", "1m").check(1, "out of order", "not done within 1m0s; --timeout allows more"); err != nil {
			t.Error(err)
		}
	})
}

// What is hidden can be neither shown nor found by its value.
func TestQueryKeepsSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const value = "hunter2hunte" // whose code has no = in it
		encoded := base64.StdEncoding.EncodeToString([]byte(value))
		r := newRig(t, secret("login", value))
		for _, args := range [][]string{
			{"-o", "yaml"}, {"-o", "jsonpath={.items}"}, {"--where", "data.password"}, {"--sort-by", "data.password", "-o", "wide"},
		} {
			got := r.run(append([]string{"query", "secrets", "--log-level=debug"}, args...)...)
			if got.code != 0 || strings.Contains(got.String(), encoded) || strings.Contains(got.String(), value) {
				t.Errorf("%q: a value leaked, or it failed:\n%s", args, got)
			}
		}
		find := []string{"query", "secrets", "--where", "data.password=" + encoded, "--count"}
		if got := r.run(find...); got.out != "0\n" {
			t.Errorf("it is found by its value:\n%s", got)
		}
		if got := r.run(append(find, "--show-secrets")...); got.out != "1\n" {
			t.Errorf("with --show-secrets it is not found:\n%s", got)
		}
	})
}

// The fields that a query shows may have any content.
func TestQueryShowsEscapesAsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		evil := pod("web-1", corev1.PodRunning)
		evil.Status.Message = "evil\x1b[2J"
		r := newRig(t, evil)
		for _, format := range []string{"", "wide", "custom-columns=M:.status.message", "jsonpath={.items[*].status.message}"} {
			got := r.run("query", "pods", "--where", "status.message", "-o", format)
			if got.code != 0 || !strings.Contains(got.out, "evil") || strings.Contains(got.out, "\x1b") && !strings.HasPrefix(format, "jsonpath") {
				t.Errorf("-o %q printed %q", format, got)
			}
		}
	})
}
