package informers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryName fails when client-go's package exports a name that this one
// does not, so that changing the import path never breaks a build.
func TestEveryName(t *testing.T) {
	theirs := exported(t, stockDir(t))
	ours := exported(t, ".")
	if len(theirs) == 0 {
		t.Fatal("client-go's package exports nothing; was it looked for in the right place?")
	}
	for name, kind := range theirs {
		if ours[name] != kind {
			t.Errorf("client-go exports the %s %s; here it is %q", kind, name, ours[name])
		}
	}
}

// stockDir is where the source of client-go's package is.
func stockDir(t *testing.T) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/client-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "informers")
}

// exported returns the exported names of a package and what they are.
func exported(t *testing.T, dir string) map[string]token.Token {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]token.Token{}
	add := func(id *ast.Ident, kind token.Token) {
		if id.IsExported() {
			names[id.Name] = kind
		}
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if file.Name.Name != "informers" || strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name, token.FUNC)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						add(s.Name, token.TYPE)
					case *ast.ValueSpec:
						for _, id := range s.Names {
							add(id, d.Tok)
						}
					}
				}
			}
		}
	}
	return names
}
