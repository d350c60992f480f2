package web

import (
	"bufio"
	"math"
	"net/http"
	"strconv"

	"github.com/tarnproject/tarn/cmd/internal/sqlout"
	"github.com/tarnproject/tarn/sqlite"
)

// resultTypes are the formats that a program may ask for.
var resultTypes = map[string]string{
	"csv": "text/csv; charset=utf-8", "json": "application/json", "table": "text/plain; charset=utf-8",
}

const (
	// moreRows is the trailer that says that there were more rows than requested; that is
	// known only at the end.
	moreRows = "Tarn-More-Rows"
	// unwrittenTable and incompleteTable are headers that name tables which lack
	// something; see [sqlout.Gaps].
	unwrittenTable, incompleteTable = "Tarn-Unwritten", "Tarn-Incomplete"
)

// sqlAnswer sends the answer to a statement while it is computed, so that it holds none of
// it.
//
// The first bytes wait in a buffer: a statement that fails early is answered with a status.
// If it fails later, the page receives the cause after the rows. The other formats have no
// place for a cause, so their answer breaks off: a file that looks complete must be complete.
type sqlAnswer struct {
	sqlout.Encoder
	w       http.ResponseWriter
	format  string
	buffer  *bufio.Writer
	gaps    sqlout.Gaps
	started bool
}

// heldBack is how much of an answer waits in the buffer.
const heldBack = 64 << 10

func newSQLAnswer(w http.ResponseWriter, format string) *sqlAnswer {
	a := &sqlAnswer{w: w, format: format}
	a.buffer = bufio.NewWriterSize(startingWriter{a}, heldBack)
	if format == "" {
		a.Encoder = &pageEncoder{w: a.buffer}
	} else {
		a.Encoder, _ = sqlout.NewEncoder(a.buffer, format) // it is one of resultTypes
	}
	return a
}

// Begin notes what the tables lack, before anything is sent.
func (a *sqlAnswer) Begin(head sqlite.Head) error {
	a.gaps = sqlout.GapsOf(head.Read)
	return a.Encoder.Begin(head)
}

// startingWriter sends the head of the answer before its first bytes.
type startingWriter struct{ *sqlAnswer }

func (s startingWriter) Write(p []byte) (int, error) {
	if !s.started {
		s.started = true
		head := s.w.Header()
		head.Set("Cache-Control", "no-store")
		head.Set("Content-Type", "application/json")
		if s.format != "" {
			head.Set("Content-Type", resultTypes[s.format])
			head.Set("Trailer", moreRows)
			for _, table := range s.gaps.Unwritten {
				head.Add(unwrittenTable, table)
			}
			for _, table := range s.gaps.Incomplete {
				head.Add(incompleteTable, table)
			}
		}
	}
	return s.w.Write(p)
}

// end sends the rest, or the error.
func (a *sqlAnswer) end(summary sqlite.Summary, err error) {
	page, forPage := a.Encoder.(*pageEncoder)
	switch {
	case err != nil && !a.started:
		fail(a.w, sqlFailure(err))
		return
	case err != nil && !forPage:
		panic(http.ErrAbortHandler)
	case err != nil:
		page.failure = err.Error()
	}
	err = a.End(summary)
	if err == nil {
		err = a.buffer.Flush()
	}
	if err == nil && summary.Cut && !forPage {
		a.w.Header().Set(moreRows, "true")
	}
	// An error at this point means that the client is gone, or too slow.
}

// pageEncoder writes the answer for the page, an object with
//
//   - columns and rows, an array for each;
//   - cut, if there were more rows;
//   - unwritten, the tables that seem to be empty because they are not on disk yet;
//   - incomplete, the tables that lack objects;
//   - seconds, how long it took;
//   - error, if it failed after some rows were sent.
type pageEncoder struct {
	w       *bufio.Writer
	gaps    sqlout.Gaps
	rows    int
	failure string
}

func (p *pageEncoder) Begin(head sqlite.Head) error {
	p.gaps = sqlout.GapsOf(head.Read)
	p.w.WriteString(`{"columns":`)
	p.w.WriteString(encodeJSON(head.Columns))
	_, err := p.w.WriteString(`,"rows":[`)
	return err
}

func (p *pageEncoder) Row(values []any) error {
	if p.rows++; p.rows > 1 {
		p.w.WriteByte(',')
	}
	p.w.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			p.w.WriteByte(',')
		}
		if err := sqlout.WriteJSON(p.w, exact(v)); err != nil {
			return err
		}
	}
	return p.w.WriteByte(']')
}

func (p *pageEncoder) End(s sqlite.Summary) error {
	p.w.WriteString(`],"cut":` + strconv.FormatBool(s.Cut))
	if len(p.gaps.Unwritten) > 0 {
		p.w.WriteString(`,"unwritten":` + encodeJSON(p.gaps.Unwritten))
	}
	if len(p.gaps.Incomplete) > 0 {
		p.w.WriteString(`,"incomplete":` + encodeJSON(p.gaps.Incomplete))
	}
	if p.failure != "" {
		p.w.WriteString(`,"error":` + encodeJSON(p.failure))
	}
	_, err := p.w.WriteString(`,"seconds":` + encodeJSON(s.Took.Seconds()) + "}\n")
	return err
}

// exact returns a value that means the same in a browser: numbers that it would round become
// text.
func exact(v any) any {
	const most = 1 << 53
	switch v := v.(type) {
	case int64:
		if v > most || v < -most {
			return strconv.FormatInt(v, 10)
		}
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	return v
}
