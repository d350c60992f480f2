package cache

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const upstreamPath = "k8s.io/client-go/tools/cache"

// How a package comes by an exported name.
const (
	nameOurs      = "ours"      // its own code
	nameForwarded = "forwarded" // a function that only calls client-go's of the same name
	nameAliased   = "aliased"   // client-go's type, constant or variable
)

// exportedNames reads a package's exported names from its source. There is no
// telling a forwarded function from another one in compiled form.
func exportedNames(t *testing.T, importPath string) map[string]string {
	t.Helper()
	pkg, err := build.Import(importPath, ".", 0)
	if err != nil {
		t.Fatalf("cannot find the source of %s: %v", importPath, err)
	}
	names := map[string]string{}
	for _, file := range pkg.GoFiles {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(pkg.Dir, file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					names[decl.Name.Name] = classOfFunc(decl)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names[spec.Name.Name] = classOf(spec.Type, spec.Name.Name)
					case *ast.ValueSpec:
						for i, name := range spec.Names {
							names[name.Name] = nameOurs
							if i < len(spec.Values) {
								names[name.Name] = classOf(spec.Values[i], name.Name)
							}
						}
					}
				}
			}
		}
	}
	maps.DeleteFunc(names, func(name, _ string) bool { return !token.IsExported(name) })
	return names
}

func classOf(expr ast.Expr, name string) string {
	if upstreamName(expr) == name {
		return nameAliased
	}
	return nameOurs
}

func classOfFunc(decl *ast.FuncDecl) string {
	if len(decl.Body.List) != 1 {
		return nameOurs
	}
	var only ast.Expr
	switch statement := decl.Body.List[0].(type) {
	case *ast.ReturnStmt:
		if len(statement.Results) == 1 {
			only = statement.Results[0]
		}
	case *ast.ExprStmt:
		only = statement.X
	}
	if call, ok := only.(*ast.CallExpr); ok && upstreamName(call.Fun) == decl.Name.Name {
		return nameForwarded
	}
	return nameOurs
}

// upstreamName gives X for upstream.X and upstream.X[T].
func upstreamName(expr ast.Expr) string {
	if generic, ok := expr.(*ast.IndexExpr); ok {
		expr = generic.X
	}
	if selector, ok := expr.(*ast.SelectorExpr); ok {
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "upstream" {
			return selector.Sel.Name
		}
	}
	return ""
}

func TestEveryNameOfClientGoIsExported(t *testing.T) {
	for _, sub := range []string{"", "/testing", "/synctrack"} {
		t.Run("cache"+sub, func(t *testing.T) {
			have := exportedNames(t, "github.com/tarnproject/tarn/cache"+sub)
			want := exportedNames(t, upstreamPath+sub)
			if len(want) < 3 {
				t.Fatalf("found only %d names in client-go's package", len(want))
			}
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if _, ok := have[name]; !ok {
					t.Errorf("client-go exports %s, this package does not: whoever uses it cannot change the import path", name)
				}
			}
		})
	}
}

func TestDocListsWhatIsOurs(t *testing.T) {
	listed := namesInDoc(t)
	actual := map[string][]string{}
	upstreamNames := exportedNames(t, upstreamPath)
	for name, class := range exportedNames(t, "github.com/tarnproject/tarn/cache") {
		_, known := upstreamNames[name]
		switch {
		case !known:
			actual["Additions"] = append(actual["Additions"], name)
		case class == nameOurs:
			actual["Ours"] = append(actual["Ours"], name)
		case class == nameForwarded:
			actual["Forwarded"] = append(actual["Forwarded"], name)
		}
	}
	for _, section := range []string{"Ours", "Forwarded", "Additions"} {
		slices.Sort(actual[section])
		if diff := cmp.Diff(listed[section], actual[section]); diff != "" {
			t.Errorf("the section %q of doc.go is out of date (-doc +code):\n%s", section, diff)
		}
	}
}

// namesInDoc reads the indented lines under each heading of the package comment.
func namesInDoc(t *testing.T) map[string][]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	names, section := map[string][]string{}, ""
	for line := range strings.Lines(parsed.Doc.Text()) {
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			section = strings.TrimSpace(heading)
		} else if strings.HasPrefix(line, "\t") {
			names[section] = append(names[section], strings.Fields(line)...)
		}
	}
	for section := range names {
		slices.Sort(names[section])
	}
	return names
}
