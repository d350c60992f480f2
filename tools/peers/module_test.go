package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The run with theirs imports nothing of ours, and the go command reads our go.mod only
// for what it imports. It must have our versions nevertheless.
func TestBothRunsHaveOurVersions(t *testing.T) {
	root := t.TempDir()
	client := filepath.Join(root, "client")
	for name, content := range map[string]string{
		"client/go.mod":         "module example.com/client\n\ngo 1.26.0\n",
		"client/client.go":      "package client\n",
		"tree/go.mod":           "module " + library + "\n\ngo 1.26.0\n\nrequire example.com/client v1.2.0\n",
		"tree/cache/cache.go":   "package cache\n\nimport _ \"example.com/client\"\n",
		"tree/ctrlcache/go.mod": "module " + ctrlcache + "\n\ngo 1.26.0\n",
		"tree/relay/go.mod":     "module " + relay + "\n\ngo 1.26.0\n",
		"tree/go.sum":           "", "tree/ctrlcache/go.sum": "", "tree/relay/go.sum": "",
		"project/go.mod": "module example.com/project\n\ngo 1.26.0\n\nrequire example.com/client v1.1.0\n\nreplace example.com/client => " +
			client + "\n",
		"project/project.go": "package project\n\nimport _ \"example.com/client\"\n",
	} {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	m := &module{ctx: t.Context(), tree: filepath.Join(root, "tree"), dir: filepath.Join(root, "project")}
	if err := m.require(); err != nil {
		t.Fatal(err)
	}
	out, err := output(m.command(m.dir, "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", "."))
	if err != nil {
		t.Fatal(err)
	}
	if want := "example.com/client v1.2.0"; !strings.Contains(string(out), want) {
		t.Errorf("the project is tested without ours with:\n%s\nand not with %s", out, want)
	}
}
