package tarn_test

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	modulePath = "github.com/tarnproject/tarn"
	// maxLines keeps a file to one concept.
	maxLines = 500
)

// A folderRule says what the Go code of a folder may import from this module.
type folderRule struct {
	// folder is a path in the module; "x/..." means x and all below it.
	folder string
	// imports are folders in the same notation, "." is the root package and
	// "*" is all but cmd.
	imports []string
	// noKubernetes forbids k8s.io and sigs.k8s.io too.
	noKubernetes bool
	// why is the reason that the test prints when the rule is broken.
	why string
}

// layout is the architecture: data flows from sources through the root
// package's engine into stores, and the drop-in packages only adapt. A folder
// that is not here may not hold Go code. The first rule that fits a folder
// holds.
//
// These rules do not apply to test files, except for cmd.
var layout = []folderRule{
	{folder: ".", imports: []string{"internal/adapter", "internal/guard"}, noKubernetes: true,
		why: "the root package is the vocabulary and the engine; it knows no protocol and no storage"},
	{folder: "internal/adapter", imports: nil, noKubernetes: true,
		why: "it is the key to what the root package has for the drop-ins alone"},
	{folder: "internal/guard", imports: nil, noKubernetes: true,
		why: "it freezes any object, and knows nothing of where it comes from"},
	{folder: "internal/enginetest", imports: []string{".", "apiserver"},
		why: "it kills feeders of any engine, and knows none of them"},
	{folder: "internal/proxytest", imports: nil, noKubernetes: true,
		why: "it passes bytes and requests on, and the tests of a module may use it without requiring more"},
	{folder: "internal/testsize", imports: nil, noKubernetes: true,
		why: "it chooses how much tests try, and knows none of them"},
	{folder: "internal/podfile", imports: nil,
		why: "benchmarks read real pods with it"},
	{folder: "internal/pgtest", imports: nil, noKubernetes: true,
		why: "it starts a server for tests, and knows nothing of what they test"},
	{folder: "internal/jsonend", imports: nil, noKubernetes: true,
		why: "it finds where JSON values end, and knows nothing of what is in them"},
	{folder: "internal/questions", imports: []string{"apiserver"},
		why: "it fills a server and knows the answers; the databases that are asked are in their own tests"},
	{folder: "internal/reasons", imports: []string{"."},
		why: "it says what errors of the API mean to the engine, to whoever speaks to a server"},
	{folder: "internal/usercall", imports: nil,
		why: "it calls the program's own code, such as a lister-watcher or a transport"},
	{folder: "internal/render", imports: nil, noKubernetes: true,
		why: "it writes any object for people to read, and knows nothing of where it comes from"},
	{folder: "internal/story", imports: []string{"."}, noKubernetes: true,
		why: "the format of stories knows neither objects nor requests; the tests that tell them do"},
	{folder: "storetest", imports: []string{"."},
		why: "the suite for store implementers knows only the contract"},
	{folder: "sinktest", imports: []string{"."}, noKubernetes: true,
		why: "the suite for sink implementers knows only the contract"},
	{folder: "changelog", imports: []string{"."}, noKubernetes: true,
		why: "the log keeps states of any object, as bytes; it knows the vocabulary, and no storage but memory"},
	{folder: "changelog/logtest", imports: []string{".", "changelog"}, noKubernetes: true,
		why: "the suite for logs knows only the contract"},
	{folder: "faults", imports: []string{"."}, noKubernetes: true,
		why: "faults are those of any source or connection; they know the vocabulary, and nothing of what is tested with them"},

	{folder: "internal/sim", imports: []string{".", "internal/adapter", "memory", "cache", "faults"},
		why: "the simulation runs the whole pipeline, and nothing runs on it"},

	{folder: "fieldpath", imports: nil, noKubernetes: true,
		why: "it reads fields of any object by their JSON names, and knows nothing of where objects come from or are kept"},

	{folder: "memory/query", imports: []string{".", "fieldpath"}, noKubernetes: true,
		why: "the language of queries knows stores by an interface only, so that they can import it"},
	{folder: "memory", imports: []string{".", "fieldpath", "memory/query"},
		why: "a store knows the vocabulary, and nothing of sources or other stores"},
	{folder: "sqlite", imports: []string{".", "changelog"},
		why: "a store knows the vocabulary, and nothing of sources or other stores"},

	{folder: "kube/columns", imports: []string{"fieldpath"},
		why: "it reads columns from objects, for whatever database keeps them"},
	{folder: "postgres", imports: []string{".", "kube/..."},
		why: "a sink knows the vocabulary, and what a Kubernetes object's columns are; no other store"},
	{folder: "sqlite/ondisk", imports: []string{".", "changelog", "memory", "fieldpath", "sqlite", "kube/..."},
		why: "it says how Kubernetes objects are kept on disk: the one place where a source and the durable store meet"},
	{folder: "kube/wire/internal/wiretest", imports: nil,
		why: "tests of all packages of kube/wire import it"},
	{folder: "kube/wire/internal/shape", imports: nil,
		why: "it knows how Go values lie in memory, and nothing of what is done with them"},
	{folder: "kube/wire/internal/recent", imports: nil, noKubernetes: true,
		why: "it remembers texts, values and statistics, of whatever reader"},
	{folder: "kube/wire/internal/pool", imports: []string{"kube/wire/internal/shape", "kube/wire/internal/recent"},
		why: "the pool holds parts, and knows no format; those who decode or compare stand above it"},
	{folder: "kube/wire/internal/share", imports: []string{"kube/wire/internal/shape", "kube/wire/internal/recent", "kube/wire/internal/pool"},
		why: "sharing by value knows no format"},
	{folder: "kube/wire/internal/json", imports: []string{"kube/wire/internal/shape", "kube/wire/internal/recent", "kube/wire/internal/pool"},
		why: "a format knows the pool, and no other format"},
	{folder: "kube/wire/internal/jsonout", imports: nil,
		why: "it encodes objects, and knows nothing of how they were decoded"},
	{folder: "kube/wire/internal/protobuf", imports: []string{"kube/wire/internal/shape", "kube/wire/internal/recent", "kube/wire/internal/pool", "kube/wire/internal/share"},
		why: "a format knows the pool, and no other format; it compares values as package share does"},
	{folder: "kube/wire", imports: []string{".", "internal/guard", "kube/wire/internal/shape", "kube/wire/internal/pool", "kube/wire/internal/share", "kube/wire/internal/json", "kube/wire/internal/jsonout", "kube/wire/internal/protobuf"},
		why: "the facade of decoding and sharing; it knows the vocabulary for the sake of its guard, and no store"},
	{folder: "kube", imports: []string{".", "memory", "kube/wire", "internal/jsonend", "internal/reasons", "internal/usercall"},
		why: "a source knows the vocabulary, and memory because its replicas live there; no other store"},

	{folder: "shards", imports: []string{".", "kube"},
		why: "a group divides what copies have; it knows copies by their sharding only"},

	{folder: "apiserver/...", imports: nil,
		why: "users' tests start it beside whatever they test; it shares nothing with the clients it serves"},

	{folder: "cache/synctrack", imports: nil,
		why: "it stands by itself in client-go too"},
	{folder: "cache/testing", imports: []string{".", "memory", "cache"},
		why: "helpers for tests of code that uses cache"},
	{folder: "cache", imports: []string{".", "memory", "kube/...", "cache/synctrack", "internal/adapter", "internal/guard", "internal/reasons", "internal/usercall"},
		why: "cache adapts what lies below it; informers and ctrlcache build on it, never the other way"},
	{folder: "informers/...", imports: []string{".", "memory", "kube/...", "cache", "informers/..."},
		why: "informers adapts, and builds on cache"},
	{folder: "ctrlcache", imports: []string{".", "memory/...", "kube/...", "cache"},
		why: "ctrlcache adapts, and builds on cache"},

	{folder: "metrics", imports: []string{".", "kube/..."},
		why: "metrics count what replicas say of themselves, whoever made them"},
	{folder: "etcd", imports: []string{"."}, noKubernetes: true,
		why: "etcd is a source like any other; the engine knows nothing of it"},
	{folder: "jetstream", imports: []string{".", "kube/wire"},
		why: "jetstream is a sink and a source like any other, which encodes Kubernetes objects; the engine knows nothing of it"},
	{folder: "jetstream/embedded", imports: nil, noKubernetes: true,
		why: "it runs a server, and knows nothing of what is kept there; a package of its own, so that feeders do not link one"},
	{folder: "metrics/relaymetrics", imports: []string{".", "metrics", "relay"},
		why: "it shows a relay; a package of its own, so that programs with replicas only do not link a relay"},
	{folder: "relay", imports: []string{".", "apiserver", "changelog", "kube", "memory"},
		why: "a relay serves copies by the HTTP side of the embedded server; nothing but the program and its metrics knows it"},
	{folder: "relay/h2", noKubernetes: true,
		why: "it speaks HTTP/2 for any handler, and knows nothing of what is served"},
	{folder: "verify", imports: []string{".", "memory", "kube/...", "internal/render"},
		why: "verify compares a copy with its source, and belongs to neither"},
	{folder: "cmd/internal/fleet", imports: []string{"kube"},
		why: "it says which clusters there are, and nothing of what is done with them"},
	{folder: "cmd/internal/mirror", imports: []string{".", "changelog", "memory", "fieldpath", "sqlite/...", "kube/...", "metrics", "verify", "internal/render", "cmd/internal/fleet"},
		why: "a mirror is several replicas of one cluster or of a fleet; those who show it stand above it"},
	{folder: "cmd/internal/sqlout", imports: []string{"sqlite"}, noKubernetes: true,
		why: "it writes the answers of any statement, and knows nothing of what they are about"},
	{folder: "cmd/internal/web", imports: []string{".", "changelog", "memory/...", "fieldpath", "sqlite", "metrics", "internal/render", "relay", "cmd/internal/mirror", "cmd/internal/sqlout"},
		why: "the page shows a mirror or a relay, and knows no cluster"},

	{folder: "examples/...", imports: []string{"*"},
		why: "an example imports what a user can import"},
	{folder: "cmd/...", imports: []string{"*", "cmd/..."},
		why: "the program stands on top of everything"},
}

func TestLayout(t *testing.T) {
	problems, err := checkLayout(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// checkLayout returns what is wrong with the module in fsys, one sentence each.
func checkLayout(fsys fs.FS) ([]string, error) {
	files := map[string][]string{}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && notOurs(fsys, name):
			return fs.SkipDir
		case !entry.IsDir() && path.Ext(name) == ".go":
			files[path.Dir(name)] = append(files[path.Dir(name)], name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var problems []string
	for folder, names := range files {
		rule, known := ruleFor(folder)
		if !known {
			problems = append(problems, fmt.Sprintf("%s: a folder that the layout does not know; give it a rule in layout_test.go, or put the code where it belongs", folder))
			continue
		}
		if public(folder) && !slices.Contains(names, path.Join(folder, "doc.go")) {
			problems = append(problems, fmt.Sprintf("%s: no doc.go; say there what the package is for", folder))
		}
		for _, name := range names {
			found, err := checkFile(fsys, name, rule)
			if err != nil {
				return nil, err
			}
			problems = append(problems, found...)
		}
	}
	slices.Sort(problems)
	return problems, nil
}

// released are the modules below the root whose folders are part of the layout. The
// others prove something about them, and import what they like.
var released = []string{"cmd", "ctrlcache", "etcd", "jetstream", "metrics", "postgres", "relay", "sqlite"}

// notOurs tells the folders that are not part of the layout.
func notOurs(fsys fs.FS, folder string) bool {
	base := path.Base(folder)
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(folder, "go.mod"))
	return err == nil && !slices.Contains(released, folder)
}

// public says whether users are meant to import the folder's package.
func public(folder string) bool {
	parts := strings.Split(folder, "/")
	return parts[0] != "cmd" && parts[0] != "examples" && !slices.Contains(parts, "internal")
}

func checkFile(fsys fs.FS, name string, rule folderRule) ([]string, error) {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, name, source, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	test := strings.HasSuffix(name, "_test.go")
	var problems []string
	if lines := bytes.Count(source, []byte("\n")); !test && lines >= maxLines {
		problems = append(problems, fmt.Sprintf("%s: %d lines, %d or more are too many for one concept; split it", name, lines, maxLines))
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if complaint := rule.check(imported, test); complaint != "" {
			line := positions.Position(spec.Pos()).Line
			problems = append(problems, fmt.Sprintf("%s:%d: imports %s, but %s", name, line, imported, complaint))
		}
	}
	return problems, nil
}

// check returns what is wrong with an import, empty if nothing is.
func (r folderRule) check(imported string, test bool) string {
	if !test && r.noKubernetes && (within(imported, "k8s.io/...") || within(imported, "sigs.k8s.io/...")) {
		return "may import nothing of Kubernetes: " + r.why
	}
	if !within(imported, modulePath+"/...") {
		return ""
	}
	target := strings.TrimPrefix(strings.TrimPrefix(imported, modulePath), "/")
	if target == "" {
		target = "."
	}
	allows := func(pattern string) bool {
		return pattern == "*" && !within(target, "cmd/...") || within(target, pattern)
	}
	if slices.ContainsFunc(r.imports, allows) || test && (!within(target, "cmd/...") || within(r.folder, "cmd/...")) {
		return ""
	}
	if within(target, "cmd/...") && !within(r.folder, "cmd/...") {
		return "nothing imports the program; move what it needs into a package"
	}
	allowed := "nothing"
	if len(r.imports) > 0 {
		allowed = "only " + strings.Join(r.imports, ", ")
	}
	return fmt.Sprintf("may import %s of this module: %s", allowed, r.why)
}

func ruleFor(folder string) (folderRule, bool) {
	i := slices.IndexFunc(layout, func(r folderRule) bool { return within(folder, r.folder) })
	if i < 0 {
		return folderRule{}, false
	}
	return layout[i], true
}

// within says whether a path fits a pattern: the same path, or with "x/..." x
// or anything below it.
func within(name, pattern string) bool {
	root, tree := strings.CutSuffix(pattern, "/...")
	return name == root || tree && strings.HasPrefix(name, root+"/")
}

// The check must see what it is there to see.
func TestLayoutCheck(t *testing.T) {
	const (
		kubernetes = `import _ "k8s.io/api/core/v1"`
		root       = `import _ "` + modulePath + `"`
		memory     = `import _ "` + modulePath + `/memory"`
		sqlite     = `import _ "` + modulePath + `/sqlite"`
		wire       = `import _ "` + modulePath + `/kube/wire"`
		wirePool   = `import _ "` + modulePath + `/kube/wire/internal/pool"`
		wireJSON   = `import _ "` + modulePath + `/kube/wire/internal/json"`
		cache      = `import _ "` + modulePath + `/cache"`
		informers  = `import _ "` + modulePath + `/informers"`
		program    = `import _ "` + modulePath + `/cmd/tarn/view"`
	)
	for _, test := range []struct {
		file, content string
		want          string
	}{
		{"a.go", kubernetes, "a.go:2: imports k8s.io/api/core/v1, but may import nothing of Kubernetes"},
		{"a.go", `import _ "sigs.k8s.io/yaml"`, "may import nothing of Kubernetes"},
		{"a.go", memory, "may import only internal/adapter, internal/guard of this module"},
		{"fieldpath/a.go", memory, "may import nothing of this module"},
		{"a_test.go", kubernetes + "\n" + memory, ""},
		{"a_test.go", program, "nothing imports the program"},
		{"memory/a.go", root + "\n" + kubernetes, ""},
		{"memory/a.go", sqlite, "may import only ., fieldpath, memory/query of this module"},
		{"memory/a.go", cache, "may import only ., fieldpath, memory/query of this module"},
		{"memory/a_test.go", cache, ""},
		{"memory/query/a.go", memory, "may import only ., fieldpath of this module"},
		{"storetest/a.go", memory, "may import only . of this module"},
		{"faults/a.go", root, ""},
		{"faults/a.go", memory, "may import only . of this module"},
		{"faults/a.go", kubernetes, "may import nothing of Kubernetes"},
		{"faults/a_test.go", memory, ""},
		{"kube/a.go", root + "\n" + memory + "\n" + wire, ""},
		{"kube/a.go", sqlite, "may import only ., memory, kube/wire"},
		{"kube/wire/a.go", root + "\n" + wirePool, ""},
		{"kube/wire/a.go", memory, "the facade of decoding and sharing"},
		{"kube/wire/internal/pool/a.go", wireJSON, "the pool holds parts, and knows no format"},
		{"kube/wire/internal/json/a.go", wirePool, ""},
		{"kube/wire/internal/json/a.go", wire, "a format knows the pool"},
		{"kube/wire/internal/protobuf/a.go", wireJSON, "a format knows the pool, and no other format"},
		{"cache/a.go", root + "\n" + memory + "\n" + wire, ""},
		{"cache/a.go", informers, "cache adapts what lies below it"},
		{"informers/a.go", cache, ""},
		{"ctrlcache/a.go", cache, ""},
		{"ctrlcache/a.go", informers, "may import only ., memory/..., kube/..., cache of this module"},
		{"examples/one/a.go", cache + "\n" + informers + "\n" + root, ""},
		{"examples/one/a.go", program, "nothing imports the program"},
		{"cmd/tarn/a.go", program + "\n" + cache, ""},
		{"stray/a.go", "", "stray: a folder that the layout does not know"},
		{"cache/deep/a.go", "", "cache/deep: a folder that the layout does not know"},
		{"stray/testdata/a.go", cache, ""},
		{"nested/sub/a.go", kubernetes, ""},
		{"memory/long.go", strings.Repeat("\n", maxLines), "memory/long.go: 501 lines"},
		{"memory/long_test.go", strings.Repeat("\n", maxLines), ""},
	} {
		t.Run(test.file+" "+test.want, func(t *testing.T) {
			tree := fstest.MapFS{
				test.file:                                {Data: []byte("package p\n" + test.content)},
				path.Join(path.Dir(test.file), "doc.go"): {Data: []byte("package p\n")},
				"nested/go.mod":                          {},
			}
			problems, err := checkLayout(tree)
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" && len(problems) > 0 {
				t.Errorf("complains without reason: %q", problems)
			}
			if test.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], test.want)) {
				t.Errorf("says %q, want one complaint with %q", problems, test.want)
			}
		})
	}
	t.Run("doc.go", func(t *testing.T) {
		tree := fstest.MapFS{
			"memory/a.go": {Data: []byte("package p\n")}, "cmd/tarn/main.go": {Data: []byte("package main\n")},
			"kube/wire/internal/pool/a.go": {Data: []byte("package pool\n")}, "examples/one/main.go": {Data: []byte("package main\n")},
		}
		problems, err := checkLayout(tree)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"memory: no doc.go; say there what the package is for"}; !slices.Equal(problems, want) {
			t.Errorf("says %q, want %q", problems, want)
		}
	})
}
