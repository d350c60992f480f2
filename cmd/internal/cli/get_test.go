package cli

import (
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
)

// TestGet shows what people see, for many command lines at once: read
// testdata/get.txt.
func TestGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning), pod("web-2", corev1.PodPending), deployment("web"), secret("login", "hunter2"))
		time.Sleep(5 * time.Minute)
		other := pod("web-9", corev1.PodRunning)
		other.Namespace, other.Labels, other.Spec.NodeName = "shop", map[string]string{"app": "shop"}, "node-2"
		r.put(other)
		if err := r.server.Register(apiserver.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(42 * time.Second)
		var b strings.Builder
		for line := range strings.Lines(`get pods
get po -A
get pod web-1
get pods web-2 web-1 --no-headers
get pods/web-1 deployments/web
get pods,deploy
get deployments.v1.apps
get all
get componentstatuses
get widgets
get pods -n nowhere
get pods -n shop --show-labels
get pods -A -l app!=web
get pods -A --field-selector spec.nodeName=node-2 -o wide
get pods -A --sort-by .status.phase
get pods --sort-by {.metadata.name} -o name
get pods,deploy -o name
get pods -o jsonpath={.items[*].metadata.name}
get pod web-1 -o jsonpath={.spec.nodeName}
get pods -o custom-columns=NAME:.metadata.name,IMAGES:{.spec.containers[*].image},NONE:metadata.nope
get pod web-1 -o go-template={{.metadata.name}}
get secrets
get secret login -o yaml
get secret login -o json --show-secrets
get pods web-1 nope
get pods deployments
get nope
get podz
get pods/
get pods web-1 -A
get pods web-1 -l a=b
get pods -l =
get pods -o yml
get pods -o jsonpath
get pods -o jsonpath={
get pods -o custom-columns=A
get pods --sort-by [
get
`) {
			line = strings.TrimSpace(line)
			b.WriteString("$ tarn " + line + "\n" + r.run(strings.Fields(line)...).String())
			if !strings.HasSuffix(b.String(), "\n") {
				b.WriteString("\n")
			}
			b.WriteString("\n")
		}
		golden(t, "get", scrub(b.String()))
	})
}

// scrub takes out what differs each time.
func scrub(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if i := strings.Index(line, "uid"); i >= 0 && strings.Count(line, "-") >= 4 {
			line = line[:i] + "uid…\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// Lists come in pages, and are shown as one.
func TestGetReadsAllPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range pageSize + 7 {
			r.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c" + strings.Repeat("x", i%5) + time.Duration(i).String()}})
		}
		for _, format := range []string{"", "name"} {
			got := r.run("get", "configmaps", "--no-headers", "-o", format)
			if n := strings.Count(got.out, "\n"); n != pageSize+7 || got.code != 0 {
				t.Errorf("-o %q printed %d lines with code %d, want %d", format, n, got.code, pageSize+7)
			}
		}
	})
}

// No command shows or logs the value of a Secret unless it is asked for.
func TestSecretsStaySecret(t *testing.T) {
	const value = "hunter2hunter2"
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	leaks := func(text string) bool { return strings.Contains(text, value) || strings.Contains(text, encoded) }
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, secret("login", value))
		for _, args := range [][]string{
			{"get", "secrets"}, {"get", "secrets", "-o", "wide", "--sort-by", ".data.password"},
			{"get", "secrets", "-o", "yaml"}, {"get", "secret/login", "-o", "json"},
			{"get", "secrets", "-o", "jsonpath={.items[*].data.password}"}, {"get", "secrets", "-o", "go-template={{.}}"},
			{"get", "secrets", "-o", "custom-columns=V:.data.password,A:.metadata.annotations"},
		} {
			got := r.run(append(args, "--log-level=debug")...)
			if got.code != 0 || leaks(got.out+got.err) {
				t.Errorf("%q: a value leaked, or it failed:\n%v", args, got)
			}
		}
		for _, args := range [][]string{{"watch", "secrets"}, {"watch", "secrets", "--diff"}, {"mirror", "secrets"}} {
			got := r.during(func(*lockedBuffer) {
				time.Sleep(5 * time.Second)
				r.put(secret("login", value+"!"))
				time.Sleep(5 * time.Second)
				r.put(secret("login", value))
				time.Sleep(5 * time.Second)
			}, append(args, "--log-level=debug")...)
			if got.code != 0 || leaks(got.out+got.err) {
				t.Errorf("%q: a value leaked, or it failed:\n%v", args, got)
			}
		}
		if got := r.run("get", "secret", "login", "-o", "yaml", "--show-secrets"); !strings.Contains(got.out, encoded) || got.err != "" {
			t.Errorf("--show-secrets does not show it, or says more:\n%v", got)
		}
	})
}

// What some other applier left in a Secret is hidden if it is named.
func TestFurtherAppliedAnnotations(t *testing.T) {
	r := newRig(t)
	s := secret("login", "hunter2")
	s.Annotations["example.com/our-copy"], s.Annotations["kapp.k14s.io/original"] = "hunter2", "hunter2"
	r.put(s)
	for _, args := range [][]string{
		{"get", "secret/login", "-o", "yaml", "--applied-annotations", "*/our-copy"},
		{"query", "secrets", "-o", "yaml", "--applied-annotations", "example.com/*"},
	} {
		if got := r.run(args...); got.code != exitOK || strings.Contains(got.out, "hunter2") || !strings.Contains(got.out, "our-copy: (hidden)") {
			t.Errorf("%q prints\n%s", args, got)
		}
	}
	if got := r.run("get", "secret/login", "-o", "yaml"); strings.Count(got.out, "hunter2") != 1 {
		t.Errorf("without the flag it prints\n%s", got)
	}
}
