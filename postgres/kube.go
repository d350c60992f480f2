package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/columns"
	"github.com/tarnproject/tarn/kube/wire"
)

// Option configures how a resource is written.
type Option func(*settings)

type settings struct {
	secrets, lastApplied bool
	applied              []string
	columns              []columns.Column
}

// WithSecrets writes Secrets, with their values. Without it a copy of Secrets cannot be
// written.
func WithSecrets() Option { return func(s *settings) { s.secrets = true } }

// WithLastApplied keeps the annotations in which appliers repeat whole objects, with all
// secrets in them. Without it they are not in the copy either.
func WithLastApplied() Option { return func(s *settings) { s.lastApplied = true } }

// AppliedCopies sets which annotations these are, instead of [kube.AppliedCopies].
func AppliedCopies(names ...string) Option { return func(s *settings) { s.applied = names } }

// WithColumns adds columns to the resource's table: for a custom resource those of its
// definition ([columns.Defined]), or any others.
func WithColumns(all ...columns.Column) Option {
	return func(s *settings) { s.columns = append(s.columns, all...) }
}

func settingsOf(opts []Option) settings {
	s := settings{applied: kube.AppliedCopies()}
	for _, o := range opts {
		o(&s)
	}
	if s.lastApplied {
		s.applied = nil
	}
	return s
}

// In writes a copy to db, which must stay open while the copy runs. T is that of the copy.
func In[T any](db *DB, opts ...Option) kube.Option {
	return kube.Options(
		kube.DropAnnotations(settingsOf(opts).applied...),
		kube.Sink(func(of kube.Origin) (tarn.Sink[T], error) { return NewObjectSink[T](db, of, opts...) }),
	)
}

// NewObjectSink returns the sink of a copy of Kubernetes objects that is made without
// [kube.Reflect]. The copy should be without the annotations of [AppliedCopies]; they are
// not written in any case.
func NewObjectSink[T any](db *DB, of kube.Origin, opts ...Option) (*Sink[T], error) {
	s := settingsOf(opts)
	resource := of.Resource.GroupResource()
	if resource == (schema.GroupResource{Resource: "secrets"}) && !s.secrets {
		return nil, errors.New("postgres: Secrets are written only if that is asked for: add WithSecrets, or do not copy them")
	}
	reader, err := columns.NewReader(of.Resource, of.Object, s.columns...)
	if err != nil {
		return nil, fmt.Errorf("postgres: %s: %w", resource, err)
	}
	decoder, err := of.Decoder()
	if err != nil {
		return nil, fmt.Errorf("postgres: %s: %w", resource, err)
	}
	codec := &objects[T]{of: of, reader: reader, decoder: decoder, leftOut: s.applied}
	sink := NewSink(db, TableName(resource), of.Selection(), codec)
	sink.wanted.of = resource.String()
	sink.source = &confirmation{of: of}
	return sink, nil
}

// TableName is the table of a resource.
func TableName(resource schema.GroupResource) string {
	return short(columns.TableName(resource), longestName-len(historySuffix))
}

// objects is the codec of Kubernetes objects.
type objects[T any] struct {
	of      kube.Origin
	reader  *columns.Reader
	decoder *wire.Decoder
	// leftOut holds the annotations that are not written.
	leftOut []string
	// size is how long the last object was, so that the memory of the next need not grow.
	size int
}

func (c *objects[T]) Columns() []columns.Column { return c.reader.Columns() }

func (c *objects[T]) Row(object T) (Row, error) {
	o, ok := any(kube.StripAnnotations(object, c.leftOut...)).(metav1.Object)
	if !ok || reflect.TypeOf(object) != c.of.Object {
		return Row{}, fmt.Errorf("a transform returned a %T, but objects of type %v are written", object, c.of.Object)
	}
	raw, err := c.json(o)
	return Row{Values: c.reader.Values(o), Labels: o.GetLabels(), Object: raw}, err
}

// json is the object as kubectl get shows it: with its kind, which typed objects do not
// have in memory.
func (c *objects[T]) json(o metav1.Object) ([]byte, error) {
	raw, err := wire.AppendJSON(make([]byte, 0, c.size+c.size/8), o)
	c.size = len(raw)
	if _, untyped := o.(*unstructured.Unstructured); untyped {
		return raw, err
	}
	if typed, ok := o.(runtime.Object); err != nil || !ok || !typed.GetObjectKind().GroupVersionKind().Empty() || len(raw) < 2 {
		return raw, err
	}
	apiVersion, kind := c.of.Kind.ToAPIVersionAndKind()
	head, err := json.Marshal(metav1.TypeMeta{APIVersion: apiVersion, Kind: kind})
	if err != nil || len(head) <= 2 {
		return raw, err
	}
	return append(append(head[:len(head)-1], ','), raw[1:]...), nil
}

func (c *objects[T]) Decode(raw []byte) (object T, err error) {
	decoded, err := c.decoder.JSON(raw)
	if err != nil {
		return object, err
	}
	object, ok := decoded.(T)
	if !ok {
		return object, fmt.Errorf("the decoder made a %T", decoded)
	}
	if typed, ok := decoded.(runtime.Object); ok && c.of.Object != reflect.TypeFor[*unstructured.Unstructured]() {
		typed.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		c.of.Mark(decoded)
	}
	return object, nil
}

// label is where the uid of the cluster stands from which the rows came.
type label struct {
	db    *DB
	table string
}

// get returns none if somebody has dropped the row. The next commit makes it again, with the cluster.
func (l label) get(ctx context.Context) (uid string, err error) {
	err = l.db.pool.QueryRow(ctx, `SELECT source FROM tarn_feeds WHERE cluster = $1 AND resource = $2`, l.db.opts.Cluster, l.table).Scan(&uid)
	if errors.Is(err, pgx.ErrNoRows) || isMissing(err) {
		return "", nil
	}
	return uid, err
}

// set records a cluster. If it is another one, the positions of the one before mean nothing, and
// states may be missing from there on. That is noted at once: this process may end before it has
// written anything of the other cluster.
func (l label) set(ctx context.Context, identity string, other bool) error {
	err := l.db.transaction(ctx, func(tx pgx.Tx) error {
		var positions []byte
		err := tx.QueryRow(ctx, `SELECT positions FROM tarn_feeds WHERE cluster = $1 AND resource = $2 AND owner = $3 FOR UPDATE`,
			l.db.opts.Cluster, l.table, l.db.token).Scan(&positions)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // another process feeds it now
		}
		if err != nil {
			return err
		}
		if other {
			var gaps []tarn.Gap
			for _, p := range decodePositions(positions) {
				gaps = append(gaps, tarn.Gap{Section: p.Section, From: p.Version, Cause: tarn.GapRewound})
			}
			if err := noteGaps(ctx, tx, l, gaps, nil); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `UPDATE tarn_feeds SET source = $3, positions = CASE WHEN $4 THEN NULL ELSE positions END
			WHERE cluster = $1 AND resource = $2`, l.db.opts.Cluster, l.table, identity, other)
		return err
	})
	if isMissing(err) {
		return nil // as in get
	}
	return err
}
