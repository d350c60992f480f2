package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/cmd/internal/sqlout"
)

// notWords matches strings and comments, which contain no names of tables.
var notWords = regexp.MustCompile(`(?s)'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/`)

var sqlWord = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// tablesIn returns the resources whose tables a statement may read, including their tables of
// labels or images. It also returns the names of all possible tables.
//
// It decides what to copy before the statement can be compiled, since there are no tables
// yet. So it looks only at the words of the statement. If a word is the name of a table but
// does not mean the table, the only cost is a copy that nobody needed.
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

// wordsIn returns the words of a statement that may be names of tables, in lower case.
func wordsIn(statement string) map[string]bool {
	words := map[string]bool{}
	for _, word := range sqlWord.FindAllString(notWords.ReplaceAllString(statement, " "), -1) {
		words[strings.ToLower(word)] = true
	}
	return words
}

// asksPast reports whether a statement names the history of a table.
func asksPast(statement string, tables []string) bool {
	words := wordsIn(statement)
	return slices.ContainsFunc(tables, func(table string) bool { return words[strings.ToLower(table)+mirror.HistorySuffix] })
}

// printGaps prints what an answer lacks because of gaps in its tables.
func (a *app) printGaps(gaps sqlout.Gaps) {
	for _, table := range gaps.Unwritten {
		fmt.Fprintf(a.errOut, "%s: the first state is not all on disk yet.\n", table)
	}
	for _, table := range gaps.Incomplete {
		fmt.Fprintf(a.errOut, "%s: the copy is not complete: an object could not be read or written.\n", table)
	}
}
