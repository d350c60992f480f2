package sqlout

import (
	"bufio"
	"encoding/json"
	"io"
	"time"

	"github.com/tarnproject/tarn/sqlite"
)

// NewPastEncoder is [NewEncoder] for answers about the past. Its JSON is an object that
// begins with the moment and the gaps that the answer touches; its "rows" are the array
// that NewEncoder writes. Whether an answer is about the past depends on the question
// alone, so that its form does not depend on what is in the tables.
func NewPastEncoder(w io.Writer, format string, at sqlite.Moment) (Encoder, error) {
	if format != "json" {
		return NewEncoder(w, format)
	}
	b := bufio.NewWriterSize(w, 32<<10)
	return &pastJSON{jsonEncoder: jsonEncoder{w: b}, at: at}, nil
}

// pastJSON writes {"asHeardAt": …, "gaps": […], "rows": […]}.
type pastJSON struct {
	jsonEncoder
	at sqlite.Moment
}

// pastHead comes before the rows.
type pastHead struct {
	// AsHeardAt is the moment, by the clock of the mirror: the order between kinds is the
	// order in which the mirror received their changes.
	AsHeardAt   string    `json:"asHeardAt,omitempty"`
	AsOfVersion string    `json:"asOfVersion,omitempty"`
	Gaps        []GapJSON `json:"gaps"`
}

// GapJSON is a range in which states of a table may be missing.
type GapJSON struct {
	Table       string `json:"table"`
	Section     string `json:"section,omitempty"`
	Since       string `json:"since"`
	Until       string `json:"until"`
	FromVersion string `json:"fromVersion,omitempty"`
	ToVersion   string `json:"toVersion,omitempty"`
	Cause       string `json:"cause"`
}

// GapOf is a gap for JSON.
func GapOf(g sqlite.TableGap) GapJSON {
	return GapJSON{
		Table: g.Table, Section: g.Section, Since: timeJSON(g.Since), Until: timeJSON(g.Until),
		FromVersion: string(g.From), ToVersion: string(g.To), Cause: string(g.Cause),
	}
}

func timeJSON(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func (p *pastJSON) Begin(head sqlite.Head) error {
	h := pastHead{AsOfVersion: string(p.at.Version), Gaps: []GapJSON{}}
	if !p.at.Time.IsZero() {
		h.AsHeardAt = timeJSON(p.at.Time)
	}
	for _, g := range head.Gaps {
		h.Gaps = append(h.Gaps, GapOf(g))
	}
	raw, err := json.Marshal(h)
	if err != nil {
		return err
	}
	p.w.Write(raw[:len(raw)-1])
	p.w.WriteString(`,"rows":`)
	return p.jsonEncoder.Begin(head)
}

func (p *pastJSON) End(sqlite.Summary) error {
	p.w.WriteString("\n]}\n")
	return p.w.Flush()
}
