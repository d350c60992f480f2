package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRewriteImports(t *testing.T) {
	got, err := imports.rewrite([]byte(`package x

import (
	kcache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/informers"
	v1 "k8s.io/client-go/informers/core/v1"
)

var text = "k8s.io/client-go/tools/cache"
`))
	if err != nil {
		t.Fatal(err)
	}
	want := `package x

import (
	kcache "github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers"
	v1 "k8s.io/client-go/informers/core/v1"
)

var text = "k8s.io/client-go/tools/cache"
`
	if string(got) != want {
		t.Errorf("got\n%s", got)
	}
}

func TestRewriteNames(t *testing.T) {
	got, err := newCache.rewrite([]byte(`package x

import "sigs.k8s.io/controller-runtime/pkg/cache"

var made, options = cache.New, cache.Options{}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := `package x; import tarnctrlcache "github.com/tarnproject/tarn/ctrlcache"

import "sigs.k8s.io/controller-runtime/pkg/cache"

var made, options = tarnctrlcache.NewCache, cache.Options{}

var _ = cache.New
`
	if string(got) != want {
		t.Errorf("got\n%s", got)
	}
}

func TestRewriteTypes(t *testing.T) {
	got, err := throughRelay.rewrite([]byte(`package x

import "sigs.k8s.io/controller-runtime/pkg/envtest"

var server = &envtest.Environment{}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := `package x; import tarnpeers "sigs.k8s.io/controller-runtime/pkg/peers"

import "sigs.k8s.io/controller-runtime/pkg/envtest"

var server = &tarnpeers.Environment{}

type _ = envtest.Environment
`
	if string(got) != want {
		t.Errorf("got\n%s", got)
	}
}

func TestRewriteSeveralNames(t *testing.T) {
	got, err := newClient.rewrite([]byte(`package x

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
)

var a, b = cache.New, kube.New
`))
	if err != nil {
		t.Fatal(err)
	}
	want := `package x; import tarnctrlcache "github.com/tarnproject/tarn/ctrlcache"

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
)

var a, b = tarnctrlcache.NewCache, tarnctrlcache.NewClient

var _ = cache.New

var _ = kube.New
`
	if string(got) != want {
		t.Errorf("got\n%s", got)
	}
}

func TestRewriteLeavesTheRest(t *testing.T) {
	for _, source := range []string{
		"package x\n\nimport \"fmt\"\n",
		"package x\n\nimport \"sigs.k8s.io/controller-runtime/pkg/cache\"\n\nvar o cache.Options\n",
		"package {{.Name}}\n\nimport \"sigs.k8s.io/controller-runtime/pkg/cache\"\n",
	} {
		if got, err := newCache.rewrite([]byte(source)); got != nil || err != nil {
			t.Errorf("%q became %q, %v", source, got, err)
		}
	}
}

func TestOverlay(t *testing.T) {
	module, to := t.TempDir(), filepath.Join(t.TempDir(), "overlay")
	uses := "package x\n\nimport _ \"k8s.io/client-go/tools/cache\"\n"
	for name, content := range map[string]string{"a/x.go": uses, "b/x.go": uses, "a/testdata/x.go": uses, "y.go": "package y\n", "a/x.txt": uses} {
		at := filepath.Join(module, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s := imports
	s.except, s.add = []string{"b"}, map[string]string{"peers/peers.go": "package peers\n"}
	file, changed, err := s.overlay(module, to)
	if err != nil || changed != 1 {
		t.Fatal(changed, err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(content, &overlay); err != nil {
		t.Fatal(err)
	}
	if names := strings.Join(sortedKeys(overlay.Replace), " "); names != module+"/a/x.go "+module+"/peers/peers.go" {
		t.Errorf("the overlay has %s", names)
	}
}
