package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/cmd/internal/sqlout"
)

// notWords is what has no names in it that could be tables: strings and comments.
var notWords = regexp.MustCompile(`(?s)'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/`)

var sqlWord = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// tablesIn are the resources whose tables, or whose tables of labels or images, a
// statement may read, and the names of all tables that there could be.
//
// It decides what is copied before the statement can be compiled, since there are no
// tables before. So it goes by the words of the statement: a word that is a table's
// name without meaning the table costs a copy that nobody needed, and nothing else.
func tablesIn(catalog *mirror.Catalog, statement string) (wanted []mirror.Resource, tables []string) {
	words := wordsIn(statement)
	for _, r := range catalog.All() {
		table := mirror.SQLName(r)
		tables = append(tables, table)
		if name := strings.ToLower(table); words[name] || words[name+"_labels"] || words[name+"_images"] {
			wanted = append(wanted, r)
		}
	}
	return wanted, tables
}

// wordsIn are the words of a statement that may be names of tables, in lower case.
func wordsIn(statement string) map[string]bool {
	words := map[string]bool{}
	for _, word := range sqlWord.FindAllString(notWords.ReplaceAllString(statement, " "), -1) {
		words[strings.ToLower(word)] = true
	}
	return words
}

// asksPast says that a statement names the history of a table.
func asksPast(statement string, tables []string) bool {
	words := wordsIn(statement)
	return slices.ContainsFunc(tables, func(table string) bool { return words[strings.ToLower(table)+mirror.HistorySuffix] })
}

// printGaps says of tables what an answer from them lacks.
func (a *app) printGaps(gaps sqlout.Gaps) {
	for _, table := range gaps.Unwritten {
		fmt.Fprintf(a.errOut, "%s: the first state is not all on disk yet.\n", table)
	}
	for _, table := range gaps.Incomplete {
		fmt.Fprintf(a.errOut, "%s: the copy is not complete: an object could not be read or written.\n", table)
	}
}
