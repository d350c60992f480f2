package sqlout

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/sqlite"
)

// written returns the output of an encoder for some rows.
func written(t *testing.T, format string, columns []string, rows [][]any, end sqlite.Summary) string {
	t.Helper()
	var b bytes.Buffer
	e, err := NewEncoder(&b, format)
	if err != nil {
		t.Fatal(err)
	}
	err = e.Begin(sqlite.Head{Columns: columns})
	for _, row := range rows {
		err = errors.Join(err, e.Row(row))
	}
	if err := errors.Join(err, e.End(end)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFormats(t *testing.T) {
	text := func(s string) sqlite.Text { return sqlite.Text(s) }
	rows := [][]any{{text("a\x1b[2J\u202e"), int64(1)}, {nil, 2.5}, {text(strings.Repeat("ä", 100)), []byte{0xff}}}
	for format, want := range map[string]string{
		"table": "NAME" + strings.Repeat(" ", 79) + "N\na [2J " + strings.Repeat(" ", 77) + "1\n" + strings.Repeat(" ", 83) + "2.5\n" + strings.Repeat("ä", 79) + "…   /w==\n(there is more than these 3 rows)\n",
		"json":  "[\n{\"name\": \"a\\u001b[2J\u202e\", \"n\": 1},\n{\"name\": null, \"n\": 2.5},\n{\"name\": \"" + strings.Repeat("ä", 100) + "\", \"n\": \"/w==\"}\n]\n",
		"csv":   "name,n\na\x1b[2J\u202e,1\n,2.5\n" + strings.Repeat("ä", 100) + ",/w==\n",
	} {
		if got := written(t, format, []string{"name", "n"}, rows, sqlite.Summary{Rows: 3, Cut: true}); got != want {
			t.Errorf("%s is\n%q, want\n%q", format, got, want)
		}
	}
	if _, err := NewEncoder(io.Discard, "xml"); err == nil {
		t.Error("xml is a format")
	}
}

// A row whose only value is missing is still a row.
func TestCSVOfNothing(t *testing.T) {
	got := written(t, "csv", []string{"node"}, [][]any{{nil}, {sqlite.Text("")}, {sqlite.Text("n")}}, sqlite.Summary{Rows: 3})
	rows, err := csv.NewReader(strings.NewReader(got)).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Errorf("three rows and their head are read as %q, %v", rows, err)
	}
}

// An answer is written while it is computed: no encoder holds it, nor a copy of it that
// grows by escapes.
func TestAnswersAreNotHeld(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "replica")
	db, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const statement = "SELECT t.a FROM (SELECT replace(printf('%.800000c', 'x'), 'x', char(1)) AS a) t, (VALUES (1), (2), (3)) v"
	for _, format := range Formats {
		e, err := NewEncoder(io.Discard, format)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		summary, err := db.Stream(t.Context(), statement, sqlite.Limits{Time: time.Minute, Bytes: 1 << 30}, e)
		if err := errors.Join(err, e.End(summary)); err != nil || summary.Rows != 3 {
			t.Fatal(summary, err)
		}
		runtime.ReadMemStats(&after)
		// csv copies each value once, and replace each twice.
		if n, most := after.TotalAlloc-before.TotalAlloc, uint64(8<<20); n > most {
			t.Errorf("%s: 2.4 MB of control characters took %d KiB, want less than %d", format, n>>10, most>>10)
		}
	}
}

// An answer about the past first names its moment and what may be missing.
func TestPastEncoder(t *testing.T) {
	began := time.UnixMilli(946684800250)
	gap := sqlite.TableGap{Table: "pods", Gap: changelog.Gap{Gap: tarn.Gap{From: "3", To: "9", Cause: tarn.GapRead}, Since: began, Until: began.Add(time.Second)}}
	for _, test := range []struct {
		format string
		at     sqlite.Moment
		gaps   []sqlite.TableGap
		want   string
	}{
		{"json", sqlite.Moment{Time: began}, nil, "{\"asHeardAt\":\"2000-01-01T00:00:00.250Z\",\"gaps\":[],\"rows\":[\n{\"valid_from\": 946684800.25}\n]}\n"},
		{"json", sqlite.Moment{Version: "7"}, []sqlite.TableGap{gap}, "{\"asOfVersion\":\"7\",\"gaps\":[{\"table\":\"pods\",\"since\":\"2000-01-01T00:00:00.250Z\",\"until\":\"2000-01-01T00:00:01.250Z\",\"fromVersion\":\"3\",\"toVersion\":\"9\",\"cause\":\"read anew\"}],\"rows\":[\n{\"valid_from\": 946684800.25}\n]}\n"},
		{"csv", sqlite.Moment{Time: began}, []sqlite.TableGap{gap}, "valid_from\n946684800.25\n"},
		{"table", sqlite.Moment{Time: began}, nil, "VALID_FROM\n946684800.25\n"},
	} {
		var b bytes.Buffer
		e, err := NewPastEncoder(&b, test.format, test.at)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(e.Begin(sqlite.Head{Columns: []string{"valid_from"}, Gaps: test.gaps}), e.Row([]any{946684800.25}), e.End(sqlite.Summary{Rows: 1})); err != nil || b.String() != test.want {
			t.Errorf("%s as of %s is %q, %v; want %q", test.format, test.at, b.String(), err, test.want)
		}
	}
}

func TestGaps(t *testing.T) {
	g := GapsOf([]sqlite.TableState{{Name: "new"}, {Name: "whole", Synced: true, Complete: true}, {Name: "torn", Synced: true}})
	if !slices.Equal(g.Unwritten, []string{"new"}) || !slices.Equal(g.Incomplete, []string{"torn"}) {
		t.Errorf("the gaps are %+v", g)
	}
}
