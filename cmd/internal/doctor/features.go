package doctor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// nobody is the name of an object that does not exist. A probe that selects it gets
	// the protocol and no objects.
	nobody = "metadata.name=tarn-doctor-probe.invalid"
	// probedObjects is how many objects a list requests, so that it is long enough for
	// compression.
	probedObjects = 50
	// compressedFrom is the size from which servers compress an answer.
	compressedFrom = 128 << 10
	// halfOfAll selects the objects of the first of two shards.
	halfOfAll = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
)

// Features checks what the server can do beyond listing and watching. None of it is
// needed; what is missing costs time or memory.
func (d *Doctor) Features(ctx context.Context, s *Server, granted []Collection, compress bool, needs ...string) {
	with := func(check func(context.Context, Collection) Result) func(context.Context) Result {
		return func(ctx context.Context) Result {
			if len(granted) == 0 {
				return skip("there is nothing that may be listed and watched")
			}
			return check(ctx, granted[0])
		}
	}
	needs = append(needs, checkAuthentication)
	streamed := d.Check(ctx, "watchlist", needs, with(s.watchList))
	d.Check(ctx, "bookmarks", needs, with(func(ctx context.Context, c Collection) Result {
		if streamed.Status == OK {
			return ok("the server sends them: one ended the initial events")
		}
		return s.bookmarks(ctx, c)
	}))
	d.Check(ctx, "compression", needs, with(func(ctx context.Context, c Collection) Result {
		if !compress {
			return skip("turned off by disable-compression")
		}
		return s.compression(ctx, c)
	}))
	d.Check(ctx, "shards", needs, with(s.shards))
}

// watchList opens a watch with initial events. Its selector matches no object, so the
// server sends only the bookmark that ends them, if it supports such watches.
func (s *Server) watchList(ctx context.Context, c Collection) Result {
	const without = "nothing to do: Tarn lists instead, which takes the server more memory"
	seen, code, err := s.watch(ctx, c, url.Values{
		"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}, "timeoutSeconds": {"2"}, "fieldSelector": {nobody},
	}, func(b bookmark) bool { return b.initialEnd })
	switch {
	case err != nil:
		return warn("check the network, and proxies in front of the server", "no answer: %v", err)
	case code == http.StatusUnprocessableEntity || code == http.StatusBadRequest:
		return warn(without, "the server refuses sendInitialEvents (%d)", code)
	case code != http.StatusOK:
		return warn("see the server's log", "the server answers %d to a watch of %s", code, c)
	case !seen:
		return warn(without, "the server ignores sendInitialEvents")
	}
	return ok("the server streams initial events")
}

// bookmarks watches for as long as a server needs to send a bookmark: it sends one two
// seconds before the end of a watch.
func (s *Server) bookmarks(ctx context.Context, c Collection) Result {
	list, _, err := s.list(ctx, c, url.Values{"limit": {"1"}, "fieldSelector": {nobody}}, nil)
	if err != nil {
		return warn("check the network, and proxies in front of the server", "no answer: %v", err)
	}
	seen, code, err := s.watch(ctx, c, url.Values{
		"resourceVersion": {list.Metadata.ResourceVersion}, "timeoutSeconds": {"4"}, "fieldSelector": {nobody},
	}, func(bookmark) bool { return true })
	switch {
	case err != nil:
		return warn("check the network, and proxies in front of the server", "no answer: %v", err)
	case code != http.StatusOK:
		return warn("see the server's log", "the server answers %d to a watch of %s", code, c)
	case !seen:
		return warn("nothing to do: a watch that is silent is asked about after a while, by a list of one object", "none came before the end of a watch")
	}
	return ok("the server sends them")
}

// compression lists enough objects for the answer to be compressed, if that many exist.
func (s *Server) compression(ctx context.Context, c Collection) Result {
	list, header, err := s.list(ctx, c, url.Values{"limit": {fmt.Sprint(probedObjects)}}, http.Header{"Accept-Encoding": {"gzip"}})
	switch {
	case err != nil:
		return warn("check the network, and proxies in front of the server", "no answer: %v", err)
	case header.Get("Content-Encoding") == "gzip":
		return ok("long lists are compressed by gzip")
	case list.bytes < compressedFrom:
		return skip("servers compress from 128 KiB on, and a list of up to %d %s takes %d KiB", probedObjects, c, list.bytes>>10)
	}
	return warn("nothing to do on a fast network; otherwise look for a proxy that unpacks, or the server's flag APIResponseCompression", "a list of %d KiB is not compressed", list.bytes>>10)
}

// shards requests one object of one half of all.
func (s *Server) shards(ctx context.Context, c Collection) Result {
	list, _, err := s.list(ctx, c, url.Values{"limit": {"1"}, "shardSelector": {halfOfAll}}, nil)
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		return ok("the server refuses shard selectors (%d); Tarn does not use them", refused.code)
	case err != nil:
		return warn("check the network, and proxies in front of the server", "no answer: %v", err)
	case list.Metadata.ShardInfo == nil:
		return ok("the server does not know shard selectors; Tarn does not use them")
	}
	return ok("the server knows shard selectors; Tarn does not use them")
}

// answered is the part of a list that is read.
type answered struct {
	Metadata metav1.ListMeta `json:"metadata"`
	bytes    int
}

// A refusedError says that the server refused a request.
type refusedError struct {
	code int
	text string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the server answers %d: %s", e.code, e.text)
}

// list reads a list. It does not read a compressed one.
func (s *Server) list(ctx context.Context, c Collection, query url.Values, header http.Header) (*answered, http.Header, error) {
	response, err := s.get(ctx, c.path(), query, header)
	if err != nil {
		return nil, nil, cause(ctx, bare(err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, nil, cause(ctx, err)
	}
	list := &answered{bytes: len(body)}
	switch {
	case response.StatusCode != http.StatusOK:
		var status metav1.Status
		_ = json.Unmarshal(body, &status) // a body that is not a Status has no message
		return nil, nil, &refusedError{response.StatusCode, strings.TrimSpace(status.Message)}
	case response.Header.Get("Content-Encoding") == "gzip" || len(body) == maxAnswer:
		return list, response.Header, nil
	}
	if err := json.Unmarshal(body, list); err != nil {
		return nil, nil, fmt.Errorf("the list of %s is malformed: %w", c, err)
	}
	return list, response.Header, nil
}

// bookmark is the part of a bookmark that is read.
type bookmark struct{ initialEnd bool }

// watch reads a stream of events until it ends or a bookmark fits.
func (s *Server) watch(ctx context.Context, c Collection, query url.Values, fits func(bookmark) bool) (seen bool, code int, err error) {
	query.Set("watch", "true")
	query.Set("allowWatchBookmarks", "true")
	response, err := s.get(ctx, c.path(), query, nil)
	if err != nil {
		return false, 0, cause(ctx, bare(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, response.StatusCode, nil
	}
	decoder := json.NewDecoder(bufio.NewReader(io.LimitReader(response.Body, maxAnswer)))
	for {
		var event struct {
			Type   string                       `json:"type"`
			Object metav1.PartialObjectMetadata `json:"object"`
		}
		switch err := decoder.Decode(&event); {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return false, response.StatusCode, nil
		case err != nil:
			return false, response.StatusCode, cause(ctx, err)
		}
		if event.Type == "BOOKMARK" && fits(bookmark{event.Object.Annotations[metav1.InitialEventsAnnotationKey] == "true"}) {
			return true, response.StatusCode, nil
		}
	}
}
