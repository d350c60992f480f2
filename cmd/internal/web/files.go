package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// files serves the page's own files, and the page itself at every address that it knows: the
// script decides what to show there.
//
// Browsers revalidate files each time and mostly get "not modified": names with a
// hash in them would need a build.
type files struct {
	byPath map[string]file
}

type file struct {
	content []byte
	kind    string
	etag    string
}

// kinds are set here because systems differ in them.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

func newFiles() *files {
	f := &files{byPath: map[string]file{}}
	entries, err := static.ReadDir("static")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, entry := range entries {
		content, err := static.ReadFile(path.Join("static", entry.Name()))
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		f.byPath["/static/"+entry.Name()] = file{content, kinds[path.Ext(entry.Name())], `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	return f
}

func (f *files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, ok := f.byPath[r.URL.Path]
	if pageAddress(r.URL.Path) {
		found, ok = f.byPath["/static/index.html"], true
	}
	if !ok {
		fail(w, notFound(r.URL.Path+" is nothing here: the page is at /"))
		return
	}
	w.Header().Set("Content-Type", found.kind)
	w.Header().Set("ETag", found.etag)
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(found.content))
}

// pageAddress reports whether the page shows something at a path.
func pageAddress(path string) bool {
	return path == "/" || path == "/problems" || path == "/sql" || strings.HasPrefix(path, "/t/") || strings.HasPrefix(path, "/o/")
}
