package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/kube/ondisk"
	"github.com/tarnproject/tarn/mirror"
)

// notWords is what has no names in it that could be tables: strings and comments.
var notWords = regexp.MustCompile(`(?s)'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/`)

var sqlWord = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// identifiers are the words of a statement, in lower case, that could be names.
func identifiers(statement string) map[string]bool {
	words := map[string]bool{}
	for _, word := range sqlWord.FindAllString(notWords.ReplaceAllString(statement, " "), -1) {
		words[strings.ToLower(word)] = true
	}
	return words
}

// tablesIn are the resources whose tables a statement names, and the names of all
// tables that there could be.
//
// Why by its words, and not by its grammar: a word that is a table's name without
// meaning the table costs a copy that nobody needed, and nothing else.
func tablesIn(catalog *mirror.Catalog, statement string) (wanted []mirror.Resource, tables []string) {
	words := identifiers(statement)
	for _, r := range catalog.All() {
		table := ondisk.TableName(r.GVR.GroupResource())
		tables = append(tables, table)
		if words[strings.ToLower(table)] || words[strings.ToLower(table)+"_labels"] {
			wanted = append(wanted, r)
		}
	}
	return wanted, tables
}

var noTable = regexp.MustCompile(`no such table: (\S+)`)

// explainSQL adds to what SQLite says of a statement which tables there are.
func explainSQL(err error, tables []string) error {
	text := strings.TrimPrefix(err.Error(), "sqlite: ")
	text = strings.ReplaceAll(text, "sqlite3: ", "")
	text = strings.TrimPrefix(text, "SQL logic error: ")
	missing := noTable.FindStringSubmatch(err.Error())
	if missing == nil {
		return rewordedError{text, err}
	}
	slices.Sort(tables)
	name := strings.TrimPrefix(missing[1], "main.")
	text = fmt.Sprintf("there is no table %s%s", name, didYouMean(nearTable(name, tables)))
	const most = 12
	switch n := len(tables); {
	case n == 0:
		text += "; there are no tables yet"
	case n <= most:
		text += "; there are " + strings.Join(tables, ", ")
	default:
		text += fmt.Sprintf("; there are %s and %d more: resources by their names, with the group behind it as in deployments_apps", strings.Join(tables[:most], ", "), n-most)
	}
	return rewordedError{text, errors.Unwrap(err)}
}

// nearTable finds a table by a mistyped name, or by that of its resource without
// the group.
func nearTable(name string, tables []string) string {
	name = strings.ToLower(name)
	for _, table := range tables {
		if rest, ok := strings.CutPrefix(table, strings.TrimSuffix(name, "s")+"s"); ok && rest != "" && rest[0] == '_' {
			return table
		}
	}
	return near(name, tables)
}
