package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// swap is one way to put ours in the place of theirs.
type swap struct {
	name string
	// imports are import paths that are replaced in all files, by packages of the same
	// name.
	imports map[string]string
	// names are functions, and types are types, that are replaced where other packages use
	// them, path.Name by path.Name.
	names, types map[string]string
	// only are the directories whose files are changed, all if empty; in except they stay
	// as they are.
	only, except []string
	// add are further files, with their content.
	add map[string]string
}

// overlay writes the files that differ to a directory, and the file for the -overlay flag
// of the go command that puts them in place. It returns that file, and how many files
// differ.
func (s swap) overlay(module, dir string) (file string, changed int, err error) {
	replace := map[string]string{}
	put := func(name string, content []byte) error {
		at := filepath.Join(dir, fmt.Sprint(len(replace))+"_"+filepath.Base(name))
		replace[filepath.Join(module, name)] = at
		return os.WriteFile(at, content, 0o666)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", 0, err
	}
	for name, content := range s.add {
		if err := put(name, []byte(content)); err != nil {
			return "", 0, err
		}
	}
	err = filepath.WalkDir(module, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(module, at)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(s.except, name) || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || len(s.only) > 0 && !slices.Contains(s.only, filepath.Dir(name)) {
			return nil
		}
		before, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		after, err := s.rewrite(before)
		if err != nil || after == nil {
			return err
		}
		changed++
		return put(name, after)
	})
	if err != nil {
		return "", 0, err
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", 0, err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, changed, os.WriteFile(file, content, 0o666)
}

// edit replaces a piece of a file.
type edit struct {
	from, to int
	text     string
}

// rewrite returns a file of Go with ours in the place of theirs, or nil if it uses
// nothing of theirs. Every line keeps its number.
func (s swap) rewrite(source []byte) ([]byte, error) {
	if !s.mentioned(source) {
		return nil, nil
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil // a template, or a test of a parser
	}
	offset := func(p token.Pos) int { return files.Position(p).Offset }
	var edits []edit
	added := map[string]bool{}
	for _, spec := range file.Imports {
		theirs, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if ours, ok := s.imports[theirs]; ok {
			edits = append(edits, edit{offset(spec.Path.Pos()), offset(spec.Path.End()), strconv.Quote(ours)})
		}
		for _, theirName := range append(sortedKeys(s.names), sortedKeys(s.types)...) {
			if path.Dir(theirName) != path.Dir(theirs) || qualifier(theirName) != theirs {
				continue
			}
			ours, use := s.names[theirName], "var _ = "
			if ours == "" {
				ours, use = s.types[theirName], "type _ = "
			}
			alias := "tarn" + path.Base(qualifier(ours))
			uses := selectors(file, localName(spec, theirs), identifier(theirName))
			for _, place := range uses {
				edits = append(edits, edit{offset(place.Pos()), offset(place.End()), alias + "." + identifier(ours)})
			}
			if len(uses) > 0 && !added[alias] {
				added[alias] = true
				end := offset(file.Name.End())
				edits = append(edits, edit{end, end, "; import " + alias + " " + strconv.Quote(qualifier(ours))})
			}
			if len(uses) > 0 {
				// Their import stays in use, whatever else the file has of it.
				edits = append(edits, edit{len(source), len(source), "\n" + use + localName(spec, theirs) + "." + identifier(theirName) + "\n"})
			}
		}
	}
	if edits == nil {
		return nil, nil
	}
	return apply(source, edits), nil
}

// mentioned says that a file names a package that is swapped.
func (s swap) mentioned(source []byte) bool {
	for theirs := range s.imports {
		if bytes.Contains(source, []byte(strconv.Quote(theirs))) {
			return true
		}
	}
	for _, theirs := range append(sortedKeys(s.names), sortedKeys(s.types)...) {
		if bytes.Contains(source, []byte(strconv.Quote(qualifier(theirs)))) {
			return true
		}
	}
	return false
}

// qualifier and identifier are the two parts of path.Name.
func qualifier(name string) string  { return name[:strings.LastIndexByte(name, '.')] }
func identifier(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// localName is what a file calls a package that it imports.
func localName(spec *ast.ImportSpec, imported string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path.Base(imported)
}

// selectors returns the expressions pkg.name of a file.
func selectors(file *ast.File, pkg, name string) (found []*ast.SelectorExpr) {
	ast.Inspect(file, func(n ast.Node) bool {
		if use, ok := n.(*ast.SelectorExpr); ok && use.Sel.Name == name {
			if x, ok := use.X.(*ast.Ident); ok && x.Name == pkg {
				found = append(found, use)
			}
		}
		return true
	})
	return found
}

// apply makes the edits, which do not overlap.
func apply(source []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, source[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, source[at:]...)
}
