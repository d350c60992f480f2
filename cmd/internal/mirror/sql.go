package mirror

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

// SQL answers a statement from the mirror's content on disk, which is up to a second behind
// the content in memory, and collects the answer. It can only read; see [sqlite.Query]. The
// mirror must have a disk.
func (m *Mirror) SQL(ctx context.Context, statement string, limits sqlite.Limits) (*sqlite.Result, error) {
	if m.disk == nil {
		return nil, errNoDisk
	}
	result, err := m.disk.DB.Query(ctx, statement, limits)
	if err != nil {
		return nil, ExplainSQL(err, m.SQLTables())
	}
	return result, nil
}

// StreamSQL answers a statement as [Mirror.SQL] does, and passes on the rows one by one; see
// [sqlite.Stream]. It returns an error of the sink unchanged.
func (m *Mirror) StreamSQL(ctx context.Context, statement string, limits sqlite.Limits, to sqlite.RowWriter) (sqlite.Summary, error) {
	if m.disk == nil {
		return sqlite.Summary{}, errNoDisk
	}
	summary, err := m.disk.DB.Stream(ctx, statement, limits, to)
	if err != nil {
		err = ExplainSQL(err, m.SQLTables())
	}
	return summary, err
}

var errNoDisk = errors.New("mirror: SQL needs a mirror that is kept on disk: see Options.Disk")

// SQLTables are the names of the tables in SQL, sorted.
func (m *Mirror) SQLTables() (names []string) {
	if m.disk == nil || m.disk.DB.Encrypted() {
		return nil
	}
	for _, t := range m.tables {
		if !t.resource.Secret() || m.disk.Secrets {
			names = append(names, SQLName(t.resource))
		}
	}
	names = append(names, RecordTable)
	slices.Sort(names)
	return names
}

// SQLName is the name of a resource's table: pods, deployments_apps.
func SQLName(r Resource) string { return ondisk.TableName(r.GVR.GroupResource()) }

// SecretsInSQL reports whether SQL can read values of Secrets.
func (m *Mirror) SecretsInSQL() bool {
	return m.disk != nil && m.disk.Secrets && slices.ContainsFunc(m.tables, func(t *Table) bool { return t.resource.Secret() && !t.hides })
}

// HistorySuffix follows the name of a table in the name of its history.
const HistorySuffix = "_history"

var noSuchTable = regexp.MustCompile(`no such table: (\S+)`)

// ExplainSQL explains an error of SQLite, and lists the existing tables if the
// statement uses another one.
func ExplainSQL(err error, tables []string) error {
	text := strings.TrimPrefix(err.Error(), "sqlite: ")
	for _, noise := range []string{"sqlite3: ", "SQL logic error: "} {
		text = strings.ReplaceAll(text, noise, "")
	}
	missing := noSuchTable.FindStringSubmatch(err.Error())
	if missing == nil {
		return explained{text, err}
	}
	tables = slices.Sorted(slices.Values(tables))
	name := strings.TrimPrefix(missing[1], "main.")
	if base, ok := strings.CutSuffix(strings.ToLower(name), HistorySuffix); ok && slices.Contains(tables, base) {
		return explained{fmt.Sprintf("%s: %v", base, changelog.ErrNoLog), fmt.Errorf("%w: %w", changelog.ErrNoLog, err)}
	}
	text = "there is no table " + name
	if near := nearestTable(strings.ToLower(name), tables); near != "" {
		text += " (did you mean " + near + "?)"
	}
	const most = 12
	switch n := len(tables); {
	case n == 0:
		text += ", nor any other"
	case n <= most:
		text += "; there are " + strings.Join(tables, ", ")
	default:
		text += fmt.Sprintf("; there are %s and %d more: resources by their names, with the group behind it as in deployments_apps", strings.Join(tables[:most], ", "), n-most)
	}
	return explained{text, err}
}

// explained is an error with another text.
type explained struct {
	text string
	err  error
}

func (e explained) Error() string { return e.text }
func (e explained) Unwrap() error { return e.err }

// nearestTable finds a table by its resource's name without the group, or by a
// mistyped one.
func nearestTable(name string, tables []string) string {
	best, distance := "", max(1, len(name)/3)+1
	for _, table := range tables {
		if rest, ok := strings.CutPrefix(table, strings.TrimSuffix(name, "s")+"s"); ok && rest != "" && rest[0] == '_' {
			return table
		}
		if d := editDistance(name, table); d < distance {
			best, distance = table, d
		}
	}
	return best
}
