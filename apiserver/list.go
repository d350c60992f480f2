package apiserver

import (
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// page is a part of a collection at one version.
type page struct {
	entries []*entry
	meta    metav1.ListMeta
}

func (s *Server) list(r *request) error {
	q, err := r.parseQuery(false)
	if err != nil {
		return err
	}
	p, err := s.page(r.content, q)
	if err != nil {
		return err
	}
	return s.sendPage(r, p)
}

// page finds what a list asks for. The version that it is read at depends on
// three parameters:
//
//	version   match          limit   read at
//	-         -              any     now; pages after the first one where that was
//	0         - NotOlder     any     now, all of it: the limit is not looked at
//	N         NotOlder       any     now, if N has been reached
//	N         -              none    now, if N has been reached
//	N         -              some    N
//	N         Exact          any     N
//
// Whatever is forbidden has been turned down before.
func (s *Server) page(c *collection, q *query) (page, error) {
	version, err := parseVersion(q.ResourceVersion)
	if err != nil {
		return page{}, apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	limit := max(0, int(q.Limit))
	if q.ResourceVersion == "0" {
		limit = 0
	}
	if q.Continue != "" {
		if version > 0 {
			return page{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		token, err := parseToken(q.Continue)
		if err != nil {
			return page{}, apierrors.NewBadRequest(err.Error())
		}
		return s.resume(c, q, token, limit)
	}
	if err := s.state.checkReached(version); err != nil {
		return page{}, err
	}
	exact := q.ResourceVersionMatch == metav1.ResourceVersionMatchExact || q.ResourceVersionMatch == "" && version > 0 && limit > 0
	if !exact {
		version = 0
	}
	entries, version, ok := s.state.snapshot(c, q.namespace, version)
	if !ok {
		return page{}, apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	return cut(entries, q, limit, version), nil
}

// resume reads the page after another one, at the same version.
func (s *Server) resume(c *collection, q *query, token token, limit int) (page, error) {
	entries, version, ok := s.state.snapshot(c, q.namespace, max(0, token.Version))
	if !ok {
		return page{}, expiredToken(token)
	}
	from, _ := slices.BinarySearchFunc(entries, token.start(q.namespace), compareKey)
	return cut(entries[from:], q, limit, version), nil
}

// snapshot returns the entries of a namespace at a version, 0 for now, and the
// version; false if it has been forgotten.
func (s *state) snapshot(c *collection, namespace string, version int64) ([]*entry, int64, bool) {
	s.age(c)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if version == 0 || version >= s.version {
		return c.span(namespace), s.version, true
	}
	if version < c.history.floor {
		return nil, 0, false
	}
	return c.at(namespace, version), version, true
}

// cut takes the first entries that match, and returns where to continue. The
// remaining number is only known if all of them match.
func cut(entries []*entry, q *query, limit int, version int64) page {
	p := page{meta: metav1.ListMeta{ResourceVersion: versionText(version)}}
	if name, ok := q.one(); ok {
		// One object is all there can be: it is looked up, and nothing follows.
		i, found := slices.BinarySearchFunc(entries, joinKey(q.namespace, name), compareKey)
		if found && q.selects(entries[i]) {
			p.entries = entries[i : i+1]
		}
		return p
	}
	if limit == 0 && q.all() {
		p.entries = entries
		return p
	}
	for i, e := range entries {
		if limit > 0 && len(p.entries) == limit {
			p.meta.Continue = newToken(version, entries[i-1].key, q.namespace)
			if q.all() {
				remaining := int64(len(entries) - i)
				p.meta.RemainingItemCount = &remaining
			}
			break
		}
		if q.selects(e) {
			p.entries = append(p.entries, e)
		}
	}
	return p
}

// sendPage answers with a list, put together from the encodings of its objects.
func (s *Server) sendPage(r *request, p page) error {
	if r.answer.shape == table {
		return s.sendTable(r, http.StatusOK, p.entries, p.meta)
	}
	f := r.form()
	kind := r.groupVersion().WithKind(r.listKind)
	if f.shape == partial {
		kind = partialListKind
	}
	compose := s.composeJSON
	if f.media == asProtobuf {
		compose = s.composeProtobuf
	}
	content, err := compose(f, kind, p)
	if err != nil {
		return err
	}
	send(r.w, r.Request, http.StatusOK, r.answer.media, content)
	return nil
}

func (s *Server) composeJSON(f form, kind schema.GroupVersionKind, p page) (body, error) {
	listMeta, err := encodeJSON(p.meta)
	if err != nil {
		return nil, err
	}
	if f.endpoint.custom && f.shape == whole && p.meta.Continue == "" {
		listMeta = append([]byte(`{"continue":"",`), listMeta[1:]...) // as the real server has it
	}
	content := make(body, 0, 2*len(p.entries)+2)
	content = append(content, fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, kind.Kind, kind.GroupVersion().String(), listMeta))
	// Items of built-in lists do not say what they are.
	before, skip := "", 0
	if f.shape == whole && !f.endpoint.custom {
		before, skip = "{", len(jsonHead(f.kind()))
	}
	for i, e := range p.entries {
		data, err := s.state.as(e, f)
		if err != nil {
			return nil, err
		}
		if i == 1 {
			before = "," + before
		}
		content = append(content, []byte(before), data[skip:])
	}
	return append(content, []byte("]}")), nil
}

func (s *Server) composeProtobuf(f form, kind schema.GroupVersionKind, p page) (body, error) {
	head, err := listHead(p.meta)
	if err != nil {
		return nil, err
	}
	content := make(body, 2, 2*len(p.entries)+2)
	content[1] = head
	for _, e := range p.entries {
		data, err := s.state.as(e, f)
		if err != nil {
			return nil, err
		}
		content = append(content, appendHead(nil, 2, len(data)), data)
	}
	content[0] = envelope(kind, content.size(), nil)
	return content, nil
}
