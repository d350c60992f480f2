package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/cmd/internal/sqlout"
	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/internal/render"
	"github.com/tarnproject/tarn/sqlite"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// heardForm is the format of a state's time: states may follow each other quickly.
const heardForm = "2006-01-02T15:04:05.000Z07:00"

// changeOf turns an entry of a history into a change of a copy.
func changeOf(e changelog.Typed[mirror.Object], before mirror.Object) tarn.Change[mirror.Object] {
	c := tarn.Change[mirror.Object]{Type: tarn.Update, Key: e.Key, Old: before, Object: e.Object, Version: e.Version}
	switch {
	case e.Operation == changelog.Deleted:
		c.Type = tarn.Delete
	case e.Operation == changelog.Added || before == nil:
		c.Type = tarn.Add
	}
	return c
}

// historyLines prints a line for each state, and with diff one for each field that
// changed.
type historyLines struct {
	out  *fieldPrinter
	diff bool
	of   *historyObject
	rows *watched
}

func (p *historyLines) end() error { return nil }

func (p *historyLines) object(of *historyObject) error {
	p.of = of
	p.rows = &watched{target: of.target, source: &diskRows{columns: of.columns}}
	return nil
}

func (p *historyLines) entry(e changelog.Typed[mirror.Object], before mirror.Object) error {
	if e.Gap != nil {
		p.out.print(term.Line{
			{Text: e.Gap.Until.Local().Format(heardForm) + " "}, {Text: "GAP     ", Style: term.Red},
			{Text: " " + gapText(p.of.resource.Name(), *e.Gap, time.Now()), Style: term.Red},
		})
		return nil
	}
	c := changeOf(e, before)
	heading := changeHeading(p.of.target, c, e.Heard.Local().Format(heardForm))
	heading = append(heading, term.Span{Text: " " + string(e.Version)})
	if p.diff && c.Type == tarn.Update {
		p.out.print(append([]term.Line{heading}, changedFields(p.of.target, c)...)...)
		return nil
	}
	heading = append(heading, term.Span{Text: " " + p.summary(c)})
	p.out.print(heading)
	return nil
}

// summary shows the values of the columns, as watch does.
func (p *historyLines) summary(c tarn.Change[mirror.Object]) string {
	shown := rowChange{of: p.rows, change: tarn.Change[*row]{Type: c.Type, Key: c.Key, Object: p.row(c.Object), Old: p.row(c.Old)}}
	return shown.summary(false)
}

func (p *historyLines) row(object mirror.Object) *row {
	if object == nil {
		return nil
	}
	return rowOf(metav1.TableRow{Cells: p.of.columns.cells(object, ""), Object: runtime.RawExtension{Object: object}})
}

// historyJSON prints an array with an object for each state and gap.
type historyJSON struct {
	out     io.Writer
	diff    bool
	of      *historyObject
	entries int
}

// historyEntry is a state, or a gap.
type historyEntry struct {
	Key       string         `json:"key"`
	Time      string         `json:"time,omitempty"`
	Until     string         `json:"until,omitempty"`
	Operation string         `json:"operation,omitempty"`
	Version   string         `json:"version,omitempty"`
	UID       string         `json:"uid,omitempty"`
	Object    map[string]any `json:"object,omitempty"`
	// Changes are the changes since the state before; More says that there are others.
	Changes []render.Edit   `json:"changes,omitempty"`
	More    bool            `json:"more,omitempty"`
	Gap     *sqlout.GapJSON `json:"gap,omitempty"`
}

func (p *historyJSON) object(of *historyObject) error {
	p.of = of
	return nil
}

func (p *historyJSON) entry(e changelog.Typed[mirror.Object], before mirror.Object) error {
	shown := historyEntry{Key: p.of.target.key(p.of.key)}
	if e.Gap != nil {
		gap := sqlout.GapOf(sqlite.TableGap{Table: mirror.SQLName(p.of.resource), Gap: *e.Gap})
		shown.Gap = &gap
		return p.write(shown)
	}
	shown.Time, shown.Operation, shown.Version, shown.UID = e.Heard.UTC().Format(heardForm), e.Operation.String(), string(e.Version), e.UID
	if !e.Until.IsZero() {
		shown.Until = e.Until.UTC().Format(heardForm)
	}
	if c := changeOf(e, before); p.diff && c.Type == tarn.Update {
		shown.Changes, shown.More = render.Differences(c.Old.Object, c.Object.Object, mostDifferences, longestValue)
	} else if e.Object != nil && !p.diff {
		shown.Object = e.Object.Object
	}
	return p.write(shown)
}

func (p *historyJSON) write(e historyEntry) error {
	var b bytes.Buffer
	b.WriteString(p.next() + "\n")
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return fmt.Errorf("%s at version %s cannot be printed: %w", e.Key, e.Version, err)
	}
	_, err := io.WriteString(p.out, strings.TrimSuffix(b.String(), "\n"))
	return err
}

// next is the separator before an entry.
func (p *historyJSON) next() string {
	if p.entries++; p.entries > 1 {
		return ","
	}
	return "["
}

func (p *historyJSON) end() error {
	text := "\n]\n"
	if p.entries == 0 {
		text = "[\n]\n"
	}
	_, err := io.WriteString(p.out, text)
	return err
}
