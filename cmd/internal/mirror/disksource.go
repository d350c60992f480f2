package mirror

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/wire"
	"github.com/tarnproject/tarn/sqlite"
)

var objectType = reflect.TypeFor[Object]()

// diskSource reads a table in a directory as a source: a list reads one state of the file,
// and a watch polls for a newer one.
//
// Why polling, and not file system notifications: network file systems and container
// mounts do not send them, and reading one row costs 20 µs. Changes between two
// states are found by the checksum of each object, so no log of changes is needed.
type diskSource struct {
	view  *sqlite.Reader
	table string
	// cluster is the cluster to read if there are several; empty if there is only one. Keys
	// do not include it.
	cluster string
	filter  objectFilter
	decoder *wire.Decoder
	pool    *wire.Pool
	// hide removes values from Secrets, and the annotations that repeat them.
	hide          bool
	appliedCopies []string

	// state is the last state that was read, and known has its objects.
	state sqlite.Holding
	known map[tarn.Key]knownObject
}

type knownObject struct {
	sum    sqlite.Sum
	object Object
	// shown says that the object is selected.
	shown bool
}

// lookEvery is how often a directory is polled. The mirror writes once a second.
const lookEvery = 250 * time.Millisecond

// Maintain watches over the objects of a copy, which share memory.
func (s *diskSource) Maintain(ctx context.Context, held tarn.Copy[Object]) {
	wire.Verifier[Object]{Pool: s.pool, Decoder: func() *wire.Decoder { return s.decoder }}.Run(ctx, held)
}

// List reads everything, or only the version for a probe.
func (s *diskSource) List(ctx context.Context, q tarn.ListQuery) (page tarn.Page[Object], err error) {
	if q.Limit == 1 {
		h, err := s.view.State(ctx, s.table)
		if err == nil {
			err = s.whole(h)
		}
		return tarn.Page[Object]{Version: s.version(h)}, err
	}
	next, h, bad, err := s.read(ctx)
	if err != nil {
		return page, err
	}
	s.state, s.known = h, next
	page.Version, page.Bad = s.version(h), bad
	for _, o := range next {
		if o.shown {
			page.Items = append(page.Items, o.object)
		}
	}
	return page, nil
}

// version is the version of the table, or of the cluster's part of it.
func (s *diskSource) version(h sqlite.Holding) tarn.Version {
	if s.cluster == "" {
		return h.Version
	}
	for _, p := range h.Positions {
		if p.Section == s.cluster {
			return p.Version
		}
	}
	return ""
}

// prefix is the prefix of the keys in the file, and own is the key without it.
func (s *diskSource) prefix() tarn.Key {
	if s.cluster == "" {
		return ""
	}
	return kube.ClusterPrefix(s.cluster)
}

func (s *diskSource) own(key tarn.Key) tarn.Key {
	return tarn.Key(strings.TrimPrefix(string(key), string(s.prefix())))
}

func (s *diskSource) whole(h sqlite.Holding) error {
	if h.Whole && s.version(h) != "" {
		return nil
	}
	return fmt.Errorf("the directory has no whole state of %s yet", s.table)
}

// read reads a state; unchanged objects are not decoded again.
func (s *diskSource) read(ctx context.Context) (next map[tarn.Key]knownObject, h sqlite.Holding, bad []tarn.BadObject, err error) {
	next = make(map[tarn.Key]knownObject, len(s.known))
	h, err = s.view.WalkPrefix(ctx, s.table, s.prefix(), func(e sqlite.Entry) error {
		if old, ok := s.known[e.Key]; ok && old.sum == e.Sum {
			next[e.Key] = old
			return nil
		}
		object, err := s.decode(e)
		if err != nil {
			bad = append(bad, tarn.BadObject{Key: s.own(e.Key), Err: err})
			return nil
		}
		next[e.Key] = knownObject{e.Sum, object, s.filter.passes(s.own(e.Key), object)}
		return nil
	})
	if err == nil {
		err = s.whole(h)
	}
	return next, h, bad, err
}

func (s *diskSource) decode(e sqlite.Entry) (Object, error) {
	raw, err := e.Bytes()
	if err != nil {
		return nil, err
	}
	return s.decodeBytes(raw)
}

// decodeBytes decodes bytes that the codec wrote.
func (s *diskSource) decodeBytes(raw []byte) (Object, error) {
	decoded, err := s.decoder.JSON(raw)
	if err != nil {
		return nil, err
	}
	object, ok := decoded.(Object)
	if !ok {
		return nil, fmt.Errorf("the decoder made a %T", decoded)
	}
	if s.hide {
		object, _ = HideValues(object, s.appliedCopies...)
	}
	return object, nil
}

// Watch follows the file from the state that was read last.
func (s *diskSource) Watch(_ context.Context, q tarn.WatchQuery) (tarn.Stream[Object], error) {
	if q.From != s.version(s.state) {
		return nil, tarn.Because(tarn.ReasonExpired, 0, fmt.Errorf("the directory is at another version than %s", q.From))
	}
	return &diskStream{source: s, until: time.Now().Add(q.Timeout)}, nil
}

// Describe reads an object's identity.
func (s *diskSource) Describe(object Object) (tarn.Meta, error) {
	if object == nil || object.GetName() == "" {
		return tarn.Meta{}, fmt.Errorf("an object of %s has no name", s.table)
	}
	key := tarn.Key(object.GetName())
	if namespace := object.GetNamespace(); namespace != "" {
		key = tarn.Key(namespace + "/" + object.GetName())
	}
	return tarn.Meta{Key: key, Version: tarn.Version(object.GetResourceVersion()), UID: string(object.GetUID())}, nil
}

// diskStream has the changes of a table in a directory.
type diskStream struct {
	source *diskSource
	until  time.Time
	events []tarn.Event[Object]
}

// Next polls until there are changes.
func (d *diskStream) Next(ctx context.Context, buf []tarn.Event[Object]) (int, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for len(d.events) == 0 {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-timer.C:
			timer.Reset(lookEvery)
		}
		if time.Now().After(d.until) {
			return 0, io.EOF
		}
		if err := d.look(ctx); err != nil {
			return 0, err
		}
	}
	n := copy(buf, d.events)
	d.events = d.events[n:]
	return n, nil
}

// Close does nothing: the stream holds nothing.
func (d *diskStream) Close() {}

// look reads the changes. It waits for a state that is written in several pieces.
func (d *diskStream) look(ctx context.Context) error {
	s := d.source
	h, err := s.view.State(ctx, s.table)
	if err != nil || s.whole(h) != nil {
		return err
	}
	if s.version(h) != s.version(s.state) {
		next, now, bad, err := s.read(ctx)
		if err != nil {
			return err
		}
		h = now
		d.events = differences(s.known, next, s.version(h))
		for _, b := range bad {
			d.events = append(d.events, tarn.Event[Object]{Type: tarn.EventModified, Bad: b})
		}
		s.known = next
	} else if h.LastContact.Equal(s.state.LastContact) {
		return nil
	}
	s.state = h
	d.events = append(d.events, tarn.Event[Object]{Type: tarn.EventBookmark, Version: s.version(h)})
	return nil
}

// differences returns the events that lead from one state to the next, in the order of their
// versions. A deleted object has the version of the state without it, as it has from a
// server.
func differences(before, next map[tarn.Key]knownObject, version tarn.Version) (events []tarn.Event[Object]) {
	for key, o := range next {
		old, was := before[key]
		was = was && old.shown
		switch {
		case o.shown && !was:
			events = append(events, tarn.Event[Object]{Type: tarn.EventAdded, Object: o.object})
		case o.shown && old.object != o.object:
			events = append(events, tarn.Event[Object]{Type: tarn.EventModified, Object: o.object})
		}
	}
	slices.SortFunc(events, func(a, b tarn.Event[Object]) int {
		x, y := tarn.Version(a.Object.GetResourceVersion()), tarn.Version(b.Object.GetResourceVersion())
		c, _ := x.Compare(y)
		return cmp.Or(c, cmp.Compare(a.Object.GetName(), b.Object.GetName()))
	})
	for key, old := range before {
		if o, ok := next[key]; old.shown && !(ok && o.shown) {
			events = append(events, tarn.Event[Object]{Type: tarn.EventDeleted, Object: atVersion(old.object, version)})
		}
	}
	return events
}

// atVersion is an object with another version; the rest is shared.
func atVersion(object Object, version tarn.Version) Object {
	all := maps.Clone(object.Object)
	metadata, _ := all["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["resourceVersion"] = string(version)
	all["metadata"] = metadata
	return &unstructured.Unstructured{Object: all}
}
