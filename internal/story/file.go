package story

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// extension is that of files with stories. A file with one story is in the format
// txtar.
const extension = ".txtar"

// title begins a story in a file that has several.
const title = "=== "

// File is a file of stories: a single one, which is named after the file, or
// several. Each of several begins with a line of "=== " and its name.
type File struct {
	Path    string
	Stories []*Story
	// words stand before the first of several stories.
	words   string
	several bool
}

// ReadFolder reads all files of stories in a folder.
func ReadFolder(folder string) ([]*File, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*"+extension))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no stories in %s", folder)
	}
	var files []*File
	for _, path := range paths {
		f, err := ReadFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// ReadFile reads one file of stories.
func ReadFile(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := parseFile(path, string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func parseFile(path, data string) (*File, error) {
	f := &File{Path: path}
	name, text := "", ""
	end := func() error {
		switch {
		case name == "" && f.several:
			f.words = text
			return nil
		case name == "":
			name = strings.TrimSuffix(filepath.Base(path), extension)
		}
		for _, other := range f.Stories {
			if other.Name == name {
				return fmt.Errorf("two stories are called %q", name)
			}
		}
		s, err := parse(name, text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f.Stories = append(f.Stories, s)
		return nil
	}
	for line := range strings.Lines(data) {
		next, begins := strings.CutPrefix(line, title)
		if !begins {
			text += line
			continue
		}
		f.several = true
		if text = strings.TrimRight(text, "\n"); text != "" { // the empty line before a title
			text += "\n"
		}
		if err := end(); err != nil {
			return nil, err
		}
		name, text = strings.TrimSpace(next), ""
		if name == "" {
			return nil, fmt.Errorf("a story without a name")
		}
	}
	if err := end(); err != nil {
		return nil, err
	}
	return f, nil
}

// Write writes the file, with the sections as they are now.
func (f *File) Write() error {
	return os.WriteFile(f.Path, []byte(f.format()), 0o644)
}

// format is the inverse of parseFile.
func (f *File) format() string {
	var b strings.Builder
	b.WriteString(f.words)
	for _, s := range f.Stories {
		if f.several && b.Len() > 0 {
			b.WriteString("\n")
		}
		if f.several {
			b.WriteString(title + s.Name + "\n")
		}
		s.format(&b)
	}
	return b.String()
}
