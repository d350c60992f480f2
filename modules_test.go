package tarn_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// foreign are modules that a program which imports only the library must not have in
// its module graph: they belong to the modules beside it.
var foreign = []string{
	"github.com/ncruces/go-sqlite3", "github.com/spf13/cobra", "sigs.k8s.io/controller-runtime",
	"github.com/chromedp/chromedp", "github.com/prometheus/client_golang",
	"github.com/nats-io/", "go.etcd.io/", "github.com/jackc/pgx",
}

// TestModuleGraph builds a package outside of the workspace that imports what operators
// import, and looks at its module graph.
func TestModuleGraph(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	program := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(program, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = program
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	write("go.sum", string(sums))
	write("go.mod", "module example.org/operator\n\ngo 1.26.0\n\nrequire "+modulePath+" v0.0.0\n\nreplace "+modulePath+" => "+here+"\n")
	write("operator.go", `package operator

import (
	_ "`+modulePath+`/cache"
	_ "`+modulePath+`/informers"
	_ "`+modulePath+`/kube"
)
`)
	run("build", ".") // a package and not a program: nothing is linked
	graph := run("mod", "graph")
	if !strings.Contains(graph, "k8s.io/client-go@") {
		t.Fatalf("this is no module graph:\n%s", graph)
	}
	for _, module := range foreign {
		for edge := range strings.Lines(graph) {
			if strings.Contains(edge, module) {
				t.Errorf("a program that imports cache, informers and kube has %s in its module graph: %s", module, strings.TrimSpace(edge))
				break
			}
		}
	}
}
