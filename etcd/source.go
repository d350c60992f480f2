package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tarnproject/tarn"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Source is a prefix of etcd as a [tarn.Source].
//
//   - A key that is the prefix itself, as some programs write for a directory, is not below
//     it, and not in the collection.
//   - A list of several pages shows one revision.
//   - A list at [tarn.Any] may be answered by a member that lags behind; any other is a
//     linearizable read.
//   - A transaction is never torn: a stream hands over all its changes at once, or fails
//     with [tarn.ReasonExpired] if they are more than fit, and is followed by a list.
type Source[V any] struct {
	client *clientv3.Client
	prefix string
	decode Decoder[V]
	// checkEvery is checkInterval, but in tests.
	checkEvery time.Duration
}

var _ tarn.Source[*Entry[string]] = (*Source[string])(nil)

// NewSource follows the keys below a prefix. The client stays the caller's, and must not be
// closed before the replica has stopped.
func NewSource[V any](client *clientv3.Client, prefix string, decode Decoder[V]) (*Source[V], error) {
	if client == nil || decode == nil || prefix == "" {
		return nil, errors.New("etcd: a source needs a client, a prefix and a decoder; for all keys, use one replica for each prefix that is needed")
	}
	return &Source[V]{client: client, prefix: prefix, decode: decode, checkEvery: checkInterval}, nil
}

// Describe returns an entry's identity.
func (s *Source[V]) Describe(e *Entry[V]) (tarn.Meta, error) {
	if e == nil || e.Key == "" {
		return tarn.Meta{}, errors.New("etcd: an entry without a key")
	}
	return e.meta(), nil
}

// List reads the prefix, or a page of it.
func (s *Source[V]) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[*Entry[V]], error) {
	var page tarn.Page[*Entry[V]]
	r, err := s.rangeOf(q)
	if err != nil {
		return page, err
	}
	response, err := s.client.Get(ctx, r.from, r.options...)
	if err != nil {
		return page, s.explain("list", r.revision, err)
	}
	if r.revision == 0 {
		r.revision = response.Header.Revision
	}
	if r.revision < r.atLeast {
		return page, tarn.Because(tarn.ReasonTooNew, 0, fmt.Errorf("etcd: list %s: the cluster is at revision %d, and not yet at %d", s.prefix, r.revision, r.atLeast))
	}
	page.Version = version(r.revision)
	page.Items = make([]*Entry[V], 0, len(response.Kvs))
	for _, kv := range response.Kvs {
		e, err := s.entry(kv)
		if err != nil {
			page.Bad = append(page.Bad, s.bad(kv, err))
			continue
		}
		page.Items = append(page.Items, e)
	}
	if response.More && len(response.Kvs) > 0 && q.Key == "" {
		page.Continue = token{r.revision, string(response.Kvs[len(response.Kvs)-1].Key)}.String()
	}
	return page, nil
}

// first is the first key that can be below the prefix.
func (s *Source[V]) first() string { return s.prefix + "\x00" }

// keyRange is what a query asks etcd for.
type keyRange struct {
	from     string
	revision int64 // 0 for the newest
	atLeast  int64
	options  []clientv3.OpOption
}

func (s *Source[V]) rangeOf(q tarn.ListQuery) (r keyRange, err error) {
	r.from = s.first()
	if q.Key != "" {
		r.from = s.prefix + string(q.Key)
	} else {
		r.options = append(r.options, clientv3.WithRange(clientv3.GetPrefixRangeEnd(s.prefix)), clientv3.WithLimit(q.Limit))
	}
	switch {
	case q.Continue != "":
		t, err := parseToken(q.Continue)
		if err != nil {
			return r, err
		}
		r.from, r.revision = t.after+"\x00", t.revision
	case q.AtLeast == tarn.Any:
		r.options = append(r.options, clientv3.WithSerializable())
	case q.AtLeast != tarn.Latest:
		if r.atLeast, err = parseVersion(q.AtLeast); err != nil {
			return r, err
		}
		if q.Exact {
			r.revision = r.atLeast
		}
	}
	if r.revision > 0 {
		r.options = append(r.options, clientv3.WithRev(r.revision))
	}
	return r, nil
}

// token says where the next page of a list begins: after a key, at the revision of the
// first page.
type token struct {
	revision int64
	after    string
}

func (t token) String() string { return strconv.FormatInt(t.revision, 10) + ":" + t.after }

func parseToken(text string) (token, error) {
	revision, after, found := strings.Cut(text, ":")
	n, err := strconv.ParseInt(revision, 10, 64)
	if !found || err != nil {
		return token{}, fmt.Errorf("etcd: %q is not the token of a list", text)
	}
	return token{n, after}, nil
}

func parseVersion(v tarn.Version) (int64, error) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("etcd: %q is not a revision: %w", v, err)
	}
	return n, nil
}
