package cli

import (
	"regexp"
	"strings"

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
		table := mirror.SQLName(r)
		tables = append(tables, table)
		if words[strings.ToLower(table)] || words[strings.ToLower(table)+"_labels"] {
			wanted = append(wanted, r)
		}
	}
	return wanted, tables
}
