package mirror

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// pastSource reads a table of a directory as of a moment: a source that never changes.
type pastSource struct {
	*diskSource
	log changelog.Log
	at  sqlite.Moment
	// version is the version of the state, once it was listed.
	version tarn.Version
}

// List reads everything, or only the version for a probe.
func (s *pastSource) List(ctx context.Context, q tarn.ListQuery) (page tarn.Page[Object], err error) {
	if q.Limit == 1 && s.version != "" {
		return tarn.Page[Object]{Version: s.version}, nil
	}
	place, err := placeOf(ctx, s.log, s.at)
	if err != nil {
		return page, err
	}
	// The version of the newest object is all that is known about the state's own version.
	page.Version = "1"
	for e, err := range s.log.AsOf(ctx, place) {
		switch {
		case err != nil:
			return page, err
		case e.Gap != nil || !e.Key.HasPrefix(s.prefix()):
			continue
		}
		object, err := s.decodeBytes(e.Object)
		if err != nil {
			page.Bad = append(page.Bad, tarn.BadObject{Key: s.own(e.Key), Err: err})
			continue
		}
		if s.filter.passes(s.own(e.Key), object) {
			page.Items = append(page.Items, object)
		}
		if page.Version.OlderThan(e.Version) {
			page.Version = e.Version
		}
	}
	if s.at.Version != "" {
		page.Version = s.at.Version
	}
	s.version = page.Version
	return page, nil
}

// Watch waits: the past does not change.
func (s *pastSource) Watch(_ context.Context, q tarn.WatchQuery) (tarn.Stream[Object], error) {
	return pastStream(q.Timeout), nil
}

// pastStream is a stream without events, which ends after its time.
type pastStream time.Duration

// Next waits for the end.
func (s pastStream) Next(ctx context.Context, _ []tarn.Event[Object]) (int, error) {
	timer := time.NewTimer(time.Duration(s))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-timer.C:
		return 0, io.EOF
	}
}

// Close does nothing: the stream holds nothing.
func (s pastStream) Close() {}

func placeOf(ctx context.Context, log changelog.Log, at sqlite.Moment) (changelog.Place, error) {
	if at.Version != "" {
		return log.AtVersion(ctx, at.Version)
	}
	return log.AtTime(ctx, at.Time)
}

// Log is the history of a resource.
func (d *Directory) Log(r Resource) (changelog.Log, error) {
	known, ok := d.record(r)
	if !ok {
		return nil, fmt.Errorf("mirror: %s has no %s", d.dir, r.Name())
	}
	return d.view.Log(known.Table), nil
}

// History walks what the directory keeps of one object, and of others that had its key.
// The options say what is hidden.
func (d *Directory) History(ctx context.Context, r Resource, key tarn.Key, opts Options) iter.Seq2[changelog.Typed[Object], error] {
	return d.walk(r, opts, func(log changelog.Log) iter.Seq2[changelog.Entry, error] { return log.Of(ctx, key) })
}

// AsOf walks the objects of a resource that lived at a place of its log, after the gaps
// that the place lies in.
func (d *Directory) AsOf(ctx context.Context, r Resource, place changelog.Place, opts Options) iter.Seq2[changelog.Typed[Object], error] {
	return d.walk(r, opts, func(log changelog.Log) iter.Seq2[changelog.Entry, error] { return log.AsOf(ctx, place) })
}

// After walks all changes of a resource after a place of its log.
func (d *Directory) After(ctx context.Context, r Resource, place changelog.Seq, opts Options) iter.Seq2[changelog.Typed[Object], error] {
	return d.walk(r, opts, func(log changelog.Log) iter.Seq2[changelog.Entry, error] { return log.After(ctx, place) })
}

// walk decodes the entries of a walk of a resource's log, and confines it to a cluster if the
// options name one.
func (d *Directory) walk(r Resource, opts Options, begin func(changelog.Log) iter.Seq2[changelog.Entry, error]) iter.Seq2[changelog.Typed[Object], error] {
	return func(yield func(changelog.Typed[Object], error) bool) {
		source, err := d.newSource(r, opts)
		if err != nil {
			yield(changelog.Typed[Object]{}, err)
			return
		}
		all := changelog.Decode(begin(d.view.Log(source.table)), source.decodeBytes)
		if d.Fleet() && opts.Cluster != "" {
			all = inCluster(all, opts.Cluster)
		}
		all(yield)
	}
}

// inCluster confines a walk of several clusters to one. The keys then do not have its name.
func inCluster(all iter.Seq2[changelog.Typed[Object], error], cluster string) iter.Seq2[changelog.Typed[Object], error] {
	prefix := string(kube.ClusterPrefix(cluster))
	return func(yield func(changelog.Typed[Object], error) bool) {
		for e, err := range all {
			switch {
			case err != nil:
			case e.Gap != nil:
				if e.Gap.Section != "" && e.Gap.Section != cluster {
					continue
				}
			default:
				own, ok := strings.CutPrefix(string(e.Key), prefix)
				if !ok {
					continue
				}
				e.Key = tarn.Key(own)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Gaps checks whether the directory knows a resource at a moment, and returns the gaps that
// contain the moment. It also returns the present state of the table, which shows how far the
// history reaches.
func (d *Directory) Gaps(ctx context.Context, r Resource, at sqlite.Moment) (now sqlite.TableState, gaps []sqlite.TableGap, err error) {
	log, err := d.Log(r)
	if err != nil {
		return now, nil, err
	}
	place, err := placeOf(ctx, log, at)
	if err != nil {
		return now, nil, err
	}
	h, err := d.view.State(ctx, SQLName(r))
	for _, g := range place.Gaps {
		gaps = append(gaps, sqlite.TableGap{Table: h.Name, Gap: g})
	}
	return sqlite.TableState{Name: h.Name, Version: h.Version, LastContact: h.LastContact, Synced: h.Version != "", Complete: h.Whole}, gaps, err
}

// Dir is the path of the directory.
func (d *Directory) Dir() string { return d.dir }
