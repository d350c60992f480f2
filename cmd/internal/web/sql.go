package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tarnproject/tarn/sqlite"
)

const (
	sqlPath = "/api/sql"
	// maxStatements is how many statements run at a time: each may need much memory.
	maxStatements = 4
	// longestStatement bounds how much of a statement is read.
	longestStatement = 1 << 20
	// usualRows is the default for the number of rows of a statement, and mostRows the
	// maximum.
	usualRows, mostRows = 1_000, 100_000
	// usualTime is the default for its time, and mostTime the maximum.
	usualTime, mostTime = 10 * time.Second, 20 * time.Second
)

// noSQL says why SQL is not available; nil if it is.
//
// Values of Secrets cannot be hidden from a statement, which may split them before it shows
// them. So if they are on disk and must not be shown, no statement is answered.
func (s *Site) noSQL() *failure {
	switch db := s.mirror.DB(); {
	case db == nil:
		return notFound("SQL needs a mirror that is kept on disk: tarn serve --to DIR")
	case db.Encrypted():
		return notFound("the copy on disk is encrypted, and has no tables for SQL")
	case s.mirror.SecretsInSQL() && !s.secretFilter.open:
		return &failure{http.StatusForbidden, "values of Secrets are on disk, and are not to be shown here"}
	}
	return nil
}

// sqlTables answers GET /api/sql: the tables that a statement can read, and with ?table= the
// columns of a table.
func (s *Site) sqlTables(r *http.Request) (any, *failure) {
	if problem := s.noSQL(); problem != nil {
		return nil, problem
	}
	tables := s.mirror.SQLTables()
	name := r.URL.Query().Get("table")
	if name == "" {
		return map[string]any{"tables": tables, "rows": usualRows, "mostRows": mostRows, "seconds": usualTime.Seconds()}, nil
	}
	if !slices.Contains(tables, name) {
		return nil, notFound(fmt.Sprintf("there is no table %q", name))
	}
	found, err := s.mirror.SQL(r.Context(), "SELECT * FROM "+name+" LIMIT 0", sqlite.Limits{Time: usualTime})
	if err != nil {
		return nil, badRequest(err)
	}
	return map[string]any{"table": name, "columns": found.Columns}, nil
}

// sql answers POST /api/sql, whose body is a statement.
func (s *Site) sql(w http.ResponseWriter, r *http.Request) {
	if problem := s.noSQL(); problem != nil {
		fail(w, problem)
		return
	}
	limits, format, problem := sqlLimits(r)
	if problem != nil {
		fail(w, problem)
		return
	}
	statement, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longestStatement))
	if err != nil {
		fail(w, &failure{http.StatusRequestEntityTooLarge, "the statement is too long"})
		return
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	default:
		w.Header().Set("Retry-After", "1")
		fail(w, &failure{http.StatusTooManyRequests, "too many statements are being answered; try again"})
		return
	}
	// The client may take as long to read as the statement to be computed.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * limits.Time))
	answer := newSQLAnswer(w, format)
	summary, err := s.mirror.StreamSQL(r.Context(), string(statement), limits, answer)
	answer.end(summary, err)
}

func sqlFailure(err error) *failure {
	switch {
	case errors.Is(err, sqlite.ErrNotReading):
		return &failure{http.StatusForbidden, err.Error()}
	case errors.Is(err, sqlite.ErrTooMany):
		return &failure{http.StatusTooManyRequests, err.Error()}
	}
	return badRequest(err)
}

// sqlLimits parses the parameters of a request beside the statement.
func sqlLimits(r *http.Request) (limits sqlite.Limits, format string, problem *failure) {
	limits = sqlite.Limits{Rows: usualRows, Time: usualTime}
	query := r.URL.Query()
	if text := query.Get("rows"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return limits, "", badRequest(fmt.Errorf("rows is a number from 1 to %d, not %q", mostRows, text))
		}
		limits.Rows = min(n, mostRows)
	}
	if text := query.Get("timeout"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return limits, "", badRequest(fmt.Errorf("timeout is a time such as 10s, not %q", text))
		}
		limits.Time = min(d, mostTime)
	}
	format = query.Get("format")
	if _, ok := resultTypes[format]; format != "" && !ok {
		return limits, "", badRequest(fmt.Errorf("format is csv, json or table, not %q", format))
	}
	return limits, format, nil
}
