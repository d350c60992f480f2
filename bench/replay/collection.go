package replay

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// writeSize is how much of a list is handed to the connection at a time: as
	// much as a frame of HTTP/2 has.
	writeSize = 16 << 10
	// compressFrom is the size from which a kube-apiserver compresses.
	compressFrom = 128 << 10
	// bookmarkEvery is how often a kube-apiserver sends a bookmark on a quiet
	// watch.
	bookmarkEvery = time.Minute
)

// serveList answers with the collection or a page of it. The continue token is
// the index of the page's first item.
func (f *form) serveList(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	from, to := 0, len(f.items)
	var err error
	if token := q.Get("continue"); token != "" {
		if from, err = strconv.Atoi(token); err != nil || from < 0 || from > to {
			fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Errorf("continue token %q is not one of this server", token))
			return
		}
	}
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 {
		to = min(to, from+limit)
	}
	p := f.page(from, to)
	size := 0
	for _, item := range p.items {
		size += len(item)
	}
	w.Header().Set("Content-Type", f.mediaType)
	var body io.Writer = w
	if f.zipped != nil && size > compressFrom && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		if len(p.items) == len(f.items) {
			w.Write(f.zipped)
			return
		}
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // that level is valid
		defer z.Close()
		body = z
	}
	buffered := bufio.NewWriterSize(body, writeSize)
	f.codec.list(buffered, p)
	buffered.Flush()
}

// serveWatch sends the whole collection first if the request says so, then the
// commanded events, until the client disconnects.
func (f *form) serveWatch(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	mediaType := f.mediaType
	if mediaType != typeJSON {
		mediaType += ";stream=watch"
	}
	w.Header().Set("Content-Type", mediaType)
	buffered := bufio.NewWriterSize(w, writeSize)
	flush := func() error {
		if err := buffered.Flush(); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	}
	if q.Get("sendInitialEvents") == "true" {
		for _, item := range f.items {
			f.codec.event(buffered, "ADDED", item)
			buffered.Flush() // a kube-apiserver writes one by one
		}
		f.sendBookmark(buffered, true)
	}
	quiet := time.NewTicker(bookmarkEvery)
	defer quiet.Stop()
	for flush() == nil {
		select {
		case s := <-f.bursts:
			for _, update := range f.updates[s.from:s.to] {
				f.codec.event(buffered, "MODIFIED", update)
				buffered.Flush()
			}
		case <-quiet.C:
			if q.Get("allowWatchBookmarks") == "true" {
				f.sendBookmark(buffered, false)
			}
		case <-r.Context().Done():
			return
		}
	}
}

func (f *form) sendBookmark(w *bufio.Writer, initialEnd bool) {
	if object, err := f.bookmark(initialEnd); err == nil {
		f.codec.event(w, "BOOKMARK", object)
	}
}
