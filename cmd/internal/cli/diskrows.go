package cli

import (
	"context"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// rowTable is the source of a view's rows, with their columns.
type rowTable interface {
	tarn.Source[*row]
	Columns() []metav1.TableColumnDefinition
}

// diskRows reads a table of a directory as rows, as [rowSource] reads one of a server.
type diskRows struct {
	tarn.Source[mirror.Object]
	columns *diskColumns
	// cluster is the cluster that it reads if there are several; empty if there is only one.
	cluster string
}

var _ rowTable = (*diskRows)(nil)

// Columns are the columns of the cells.
func (s *diskRows) Columns() []metav1.TableColumnDefinition { return s.columns.definitions }

func (s *diskRows) row(o mirror.Object) *row {
	if o == nil {
		return nil
	}
	made := rowOf(metav1.TableRow{Cells: s.columns.cells(o, s.cluster), Object: runtime.RawExtension{Object: o}})
	if s.cluster != "" {
		made.meta.Key = kube.ClusterPrefix(s.cluster) + made.meta.Key
	}
	return made
}

// List reads one page.
func (s *diskRows) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[*row], error) {
	page, err := s.Source.List(ctx, q)
	rows := tarn.Page[*row]{Version: page.Version, Continue: page.Continue, Bad: page.Bad}
	for _, o := range page.Items {
		rows.Items = append(rows.Items, s.row(o))
	}
	return rows, err
}

// Watch opens a stream.
func (s *diskRows) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[*row], error) {
	stream, err := s.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &diskRowStream{stream: stream, rows: s}, nil
}

// Describe reads a row's identity.
func (s *diskRows) Describe(r *row) (tarn.Meta, error) { return (*rowSource)(nil).Describe(r) }

type diskRowStream struct {
	stream tarn.Stream[mirror.Object]
	rows   *diskRows
	buf    []tarn.Event[mirror.Object]
}

// Next makes rows of the directory's events.
func (s *diskRowStream) Next(ctx context.Context, buf []tarn.Event[*row]) (int, error) {
	if len(s.buf) < len(buf) {
		s.buf = make([]tarn.Event[mirror.Object], len(buf))
	}
	n, err := s.stream.Next(ctx, s.buf[:len(buf)])
	for i, e := range s.buf[:n] {
		buf[i] = tarn.Event[*row]{Type: e.Type, Object: s.rows.row(e.Object), Version: e.Version, InitialEnd: e.InitialEnd, Bad: e.Bad}
	}
	return n, err
}

// Close releases the stream.
func (s *diskRowStream) Close() { s.stream.Close() }
