package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/sqlite"
)

const (
	// pastAtOnce is how many requests read the history at a time; others wait.
	pastAtOnce = 4
	// settleWithin is how close to the present a moment must be for pending states to be
	// written first. It is longer than the delay of the disk.
	settleWithin = 5 * time.Second
)

// pastAnswer describes the moment and the range of an answer about the past.
type pastAnswer struct {
	// At is the moment, by the clock of the mirror. Across tables it means "as heard at".
	At string `json:"at,omitempty"`
	// Since is the oldest moment that can be asked for, Until the last contact with the
	// server, and Time the present.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	Time  string `json:"time"`
	// Gaps are the ranges that the answer touches, within which states may be missing.
	Gaps []gapAnswer `json:"gaps"`
	// Note says why the newest states may be missing.
	Note string `json:"note,omitempty"`
}

type gapAnswer struct {
	Since string        `json:"since"`
	Until string        `json:"until"`
	Cause tarn.GapCause `json:"cause"`
	// Section is the namespace of the gap, empty if it is in all.
	Section string       `json:"section,omitempty"`
	From    tarn.Version `json:"fromVersion,omitempty"`
	To      tarn.Version `json:"toVersion,omitempty"`
}

func gapOf(g changelog.Gap) gapAnswer {
	return gapAnswer{Since: stamp(g.Since), Until: stamp(g.Until), Cause: g.Cause, Section: g.Section, From: g.From, To: g.To}
}

func gapsOf(gaps []changelog.Gap) []gapAnswer {
	all := []gapAnswer{}
	for _, g := range gaps {
		all = append(all, gapOf(g))
	}
	return all
}

// pastReader reads the history of a table for one request.
type pastReader struct {
	*mirror.TableLog
	ctx    context.Context
	table  *mirror.Table
	bounds changelog.Bounds
	about  pastAnswer
}

// readPast calls a function with the history of a table, when its turn comes. A request about
// a moment long ago does not wait for the disk to be written.
func (s *Site) readPast(r *http.Request, at time.Time, read func(*pastReader) error) *failure {
	table, problem := s.table(r.PathValue("table"))
	if problem != nil {
		return problem
	}
	log, err := s.mirror.Log(table)
	if err != nil {
		return pastFailure(table, err)
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), mostTime, errPastTooLong)
	defer cancel()
	select {
	case s.past.turns <- struct{}{}:
		defer func() { <-s.past.turns }()
	case <-ctx.Done():
		return pastFailure(table, context.Cause(ctx))
	}
	reader := &pastReader{TableLog: log, ctx: ctx, table: table, about: pastAnswer{At: stamp(at), Gaps: []gapAnswer{}}}
	if at.IsZero() || time.Since(at) < settleWithin {
		if err := log.Settle(); err != nil {
			reader.about.Note = err.Error()
		}
	}
	reader.bounds, err = log.Bounds(ctx)
	if err == nil {
		reader.about.Since, reader.about.Until, reader.about.Time = stamp(reader.bounds.Since), stamp(reader.bounds.Until), stamp(time.Now())
		err = read(reader)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return pastFailure(table, context.Cause(ctx))
	case err != nil:
		return pastFailure(table, err)
	}
	return nil
}

var errPastTooLong = fmt.Errorf("reading the history took longer than %s: ask for less, or by SQL", mostTime)

// pastFailure says in one line why there is no answer.
func pastFailure(table *mirror.Table, err error) *failure {
	var known *failure
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, changelog.ErrNoLog):
		return notFound(err.Error())
	case errors.Is(err, sqlite.ErrNoCollection):
		return notFound(table.Resource().Name() + ": no history is kept yet: its first state is not on disk")
	case errors.Is(err, changelog.ErrExpired):
		return &failure{http.StatusGone, err.Error()}
	case errors.Is(err, errPastTooLong):
		return &failure{http.StatusServiceUnavailable, err.Error()}
	}
	return &failure{http.StatusInternalServerError, err.Error()}
}

// readMoment parses a time, or how long ago it was. It is zero for an empty text.
func readMoment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err != nil:
		return at, fmt.Errorf("at=%s: a time such as 2026-11-16T02:13:05Z is wanted, or how long ago it was, such as 10m", text)
	case at.After(now):
		return at, fmt.Errorf("at=%s: that is in the future: it is %s here", text, stamp(now))
	}
	return at, nil
}

// tableHistory describes the history of a table.
type tableHistory struct {
	Table string `json:"table"`
	pastAnswer
	States int64 `json:"states"`
}

// history answers /api/history/{table}.
func (s *Site) history(r *http.Request) (any, *failure) {
	found := tableHistory{}
	problem := s.readPast(r, time.Time{}, func(past *pastReader) error {
		gaps, err := past.Gaps(past.ctx)
		past.about.Gaps = gapsOf(gaps)
		found = tableHistory{past.table.Resource().Name(), past.about, past.bounds.States}
		return err
	})
	if problem != nil {
		return nil, problem
	}
	return found, nil
}
