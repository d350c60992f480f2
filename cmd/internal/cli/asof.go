package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/sqlite"
)

// asOf is the flags by which a command asks a directory about the past.
type asOf struct {
	text, version string
	// moment is what they mean. Relative times count from the start of the command.
	moment sqlite.Moment
}

func (o *asOf) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.text, "as-of", "", "with --from, show the past: 10m (ago), 2026-11-16T02:00:00Z, or '2026-11-16 02:00' in local time")
	flags.StringVar(&o.version, "as-of-version", "", "with --from, show the past at this resource version")
	_ = cmd.RegisterFlagCompletionFunc("as-of", choices("1m", "10m", "1h", "24h"))
	_ = cmd.RegisterFlagCompletionFunc("as-of-version", cobra.NoFileCompletions)
}

// check parses the flags; from is the directory.
func (o *asOf) check(from string) (err error) {
	switch {
	case o.text == "" && o.version == "":
		return nil
	case o.text != "" && o.version != "":
		return usagef("--as-of and --as-of-version name two moments: leave one out")
	case from == "":
		return usagef("the past is in a replica directory that keeps a history: name it with --from")
	case isAddress(from):
		return usagef("--from %s: a page shows the present; for the past name the directory that it keeps", from)
	case o.version != "":
		o.moment.Version = tarn.Version(o.version)
		return nil
	}
	o.moment.Time, err = parseMoment("--as-of", o.text, time.Now())
	return err
}

// past reports whether the flags name a moment.
func (o *asOf) past() bool { return !o.moment.Present() }

// momentForms are the ways to write a time. It is in the local zone unless the text names
// one.
var momentForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

// parseMoment parses a moment that is not in the future: how long ago it was, or a time.
func parseMoment(flag, text string, now time.Time) (time.Time, error) {
	at := time.Time{}
	if ago, err := parseSpan(text); err == nil {
		at = now.Add(-ago)
	}
	for _, form := range momentForms {
		if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
			at = t
		}
	}
	switch {
	case at.IsZero():
		return at, usagef("%s %q is not a time: write an age, such as 10m or 7d, or a time, such as 2026-11-16T02:00:00Z or '2026-11-16 02:00'", flag, text)
	case at.After(now):
		return at, usagef("%s %s is in the future: it is %s now", flag, text, now.Format(time.RFC3339))
	}
	return at, nil
}

// explainPast says what to do when a history cannot answer a question.
func explainPast(err error) error {
	advice := ""
	switch {
	case errors.Is(err, changelog.ErrNoLog) && strings.Contains(err.Error(), mirror.RecordTable+":"):
		advice = "; ask for it without --as-of"
	case errors.Is(err, changelog.ErrNoLog):
		advice = `; "tarn mirror --to DIR --history 24h" keeps one from then on`
	case errors.Is(err, changelog.ErrAhead):
		advice = "; ask for that version or an older one, or for a time with --as-of"
	case errors.Is(err, changelog.ErrExpired):
		advice = "; ask for a later moment; --history of mirror says for how long states are kept"
		if strings.Contains(err.Error(), "two meanings") {
			advice = "; ask for a time with --as-of"
		}
	default:
		return err
	}
	return rewordedError{readingFile.ReplaceAllString(err.Error(), "") + advice, err}
}

// readingFile is the prefix of package sqlite's errors, which is about its file and not about
// the question.
var readingFile = regexp.MustCompile(`^sqlite: (read .*?\.db: )?`)

// mostGaps is how many gaps are printed.
const mostGaps = 20

// printPast prints the moment of an answer, the tables that it reads, and the states that
// it may lack.
func (a *app) printPast(at sqlite.Moment, read []sqlite.TableState, gaps []sqlite.TableGap) {
	w, now := a.errOut, time.Now()
	var names []string
	for _, table := range read {
		names = append(names, table.Name)
	}
	switch {
	case at.Present() || len(names) == 0:
	case at.Version != "":
		fmt.Fprintf(w, "This is the state at version %s.\n", at.Version)
	case len(names) == 1:
		fmt.Fprintf(w, "This is the state as of %s.\n", at.Time.Local().Format(momentShown))
	default:
		fmt.Fprintf(w, "This is the state as heard at %s: %s are shown as the mirror knew them then; there is no other order between kinds.\n", at.Time.Local().Format(momentShown), enumerate(names))
	}
	for _, table := range read {
		if last := table.LastContact; !at.Time.IsZero() && at.Time.Sub(last) > printAgeFrom {
			fmt.Fprintf(w, "%s: the last contact with the server was at %s; what happened after it is not known.\n", table.Name, dayTime(last, now))
		}
	}
	for i, g := range gaps {
		if i == mostGaps {
			fmt.Fprintf(w, "… and %s: SELECT * FROM tarn_gaps shows all.\n", plural(len(gaps)-mostGaps, "other gap"))
			break
		}
		fmt.Fprintf(w, "%s\n", gapText(g.Table, g.Gap, now))
	}
}

// printRewinds checks tables whose server went back, and reports if the requested version was
// given out twice. Answers are from the second time.
func (a *app) printRewinds(ctx context.Context, dir string, at sqlite.Moment, read []sqlite.TableState) error {
	if at.Version == "" || len(read) == 0 {
		return nil
	}
	found, err := sqlite.Query(ctx, dir, "SELECT collection, from_version, to_version, until FROM tarn_gaps WHERE cause = ? ORDER BY until", sqlite.Limits{}, string(tarn.GapRewound))
	if err != nil {
		return err
	}
	for _, row := range found.Rows {
		table, _ := row[0].(string)
		from, _ := row[1].(string)
		to, _ := row[2].(string)
		until, _ := row[3].(float64)
		if at.Version.OlderThan(tarn.Version(to)) || tarn.Version(from).OlderThan(at.Version) || !slices.ContainsFunc(read, func(s sqlite.TableState) bool { return s.Name == table }) {
			continue
		}
		fmt.Fprintf(a.errOut, "%s: the server went back from version %s to %s at %s, and version %s here is the one after that; ask for a time with --as-of to see the state before.\n",
			table, from, to, dayTime(time.UnixMilli(int64(until*1000)), time.Now()), at.Version)
	}
	return nil
}

// checkPast checks that a directory knows resources at the requested moment, before anything
// is read.
func (at cluster) checkPast(ctx context.Context, resources []mirror.Resource) error {
	if at.moment.Present() {
		return nil
	}
	for _, r := range resources {
		if _, _, err := at.directory.Gaps(ctx, r, at.moment); err != nil {
			return explainPast(err)
		}
	}
	return nil
}

// printMoment prints the same for the moment of a table of resources.
func (a *app) printMoment(ctx context.Context, at cluster, resources []mirror.Resource) {
	var read []sqlite.TableState
	var gaps []sqlite.TableGap
	for _, r := range resources {
		table, within, err := at.directory.Gaps(ctx, r, at.moment)
		if err != nil {
			continue // it was reported before
		}
		read, gaps = append(read, table), append(gaps, within...)
	}
	a.printPast(at.moment, read, gaps)
	if err := a.printRewinds(ctx, at.directory.Dir(), at.moment, read); err != nil {
		a.logger.Warn("whether the server has gone back is not known", "error", err)
	}
}

// momentShown is the format of an answer's moment.
const momentShown = "2006-01-02 15:04:05 MST"

// gapText says what may be missing, in one line.
func gapText(table string, g changelog.Gap, now time.Time) string {
	if g.Section != "" {
		table += " (" + g.Section + ")"
	}
	between := fmt.Sprintf("between %s and %s", dayTime(g.Since, now), dayTime(g.Until, now))
	if g.Since.UnixMilli() <= 0 {
		between = "before " + dayTime(g.Until, now)
	}
	return fmt.Sprintf("%s: states %s may be missing: %s", table, between, g.Cause)
}

// enumerate joins names for a sentence: pods, nodes and services.
func enumerate(names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return strings.Join(names, "")
}
