package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// page is a part of a collection at one version.
type page struct {
	entries []*Object
	meta    metav1.ListMeta
}

func (s *Reader) list(r *request) error {
	q, err := r.parseQuery(false)
	if err != nil {
		return err
	}
	p, err := s.page(r.Context(), q)
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
func (s *Reader) page(ctx context.Context, q *query) (page, error) {
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
		return s.resume(ctx, q, token, limit)
	}
	at := At{Match: NotOlder, Version: version}
	switch {
	case q.ResourceVersion == "":
		at.Match = Latest
	case q.ResourceVersionMatch == metav1.ResourceVersionMatchExact || q.ResourceVersionMatch == "" && version > 0 && limit > 0:
		at.Match = Exact
	}
	found, err := s.state.List(ctx, q.Namespace, at)
	if errors.Is(err, ErrExpired) {
		err = apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	if err != nil {
		return page{}, err
	}
	return cut(found.Objects, q, limit, found.Version), nil
}

// resume reads the page after another one, at the same version.
func (s *Reader) resume(ctx context.Context, q *query, token token, limit int) (page, error) {
	at := At{Match: Exact, Version: token.Version}
	if token.Version < 0 {
		at = At{Match: Latest}
	}
	found, err := s.state.List(ctx, q.Namespace, at)
	if errors.Is(err, ErrExpired) {
		err = expiredToken(token)
	}
	if err != nil {
		return page{}, err
	}
	from, _ := slices.BinarySearchFunc(found.Objects, token.start(q.Namespace), compareKey)
	return cut(found.Objects[from:], q, limit, found.Version), nil
}

// cut takes the first entries that match, and returns where to continue. The
// remaining number is only known if all of them match.
func cut(entries []*Object, q *query, limit int, version int64) page {
	p := page{meta: metav1.ListMeta{ResourceVersion: versionText(version)}}
	if q.Shard != nil {
		q.Shard.echo(&p.meta)
	}
	if name, ok := q.one(); ok {
		// One object is all there can be: it is looked up, and nothing follows.
		i, found := slices.BinarySearchFunc(entries, joinKey(q.Namespace, name), compareKey)
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
			p.meta.Continue = newToken(version, entries[i-1].key, q.Namespace)
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
func (s *Reader) sendPage(r *request, p page) error {
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

func (s *Reader) composeJSON(f form, kind schema.GroupVersionKind, p page) (body, error) {
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
		data, err := s.encodings.of(e, f)
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

func (s *Reader) composeProtobuf(f form, kind schema.GroupVersionKind, p page) (body, error) {
	head, err := listHead(p.meta)
	if err != nil {
		return nil, err
	}
	content := make(body, 2, 2*len(p.entries)+2)
	content[1] = head
	for _, e := range p.entries {
		data, err := s.encodings.of(e, f)
		if err != nil {
			return nil, err
		}
		content = append(content, appendHead(nil, 2, len(data)), data)
	}
	content[0] = envelope(kind, content.size(), nil)
	return content, nil
}
