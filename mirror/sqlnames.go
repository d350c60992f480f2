package mirror

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/sqlite"
)

// notWords is what has no names in it that could be tables: strings and comments.
var notWords = regexp.MustCompile(`(?s)'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/`)

var sqlWord = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// NamedInSQL are those of the tables that a statement names, by their own names or
// by those of their labels.
//
// Why by its words, and not by its grammar: a word that is a table's name without
// meaning the table costs its caller a copy, or a remark, that nobody needed, and
// nothing else.
func NamedInSQL(statement string, tables []string) (named []string) {
	words := map[string]bool{}
	for _, word := range sqlWord.FindAllString(notWords.ReplaceAllString(statement, " "), -1) {
		words[strings.ToLower(word)] = true
	}
	for _, table := range tables {
		if name := strings.ToLower(table); words[name] || words[name+"_labels"] {
			named = append(named, table)
		}
	}
	return named
}

// askUnwritten asks for the collections whose first state is not all on disk.
const askUnwritten = "SELECT name FROM tarn_collections WHERE NOT whole AND version = ''"

// unwritten are those of the tables that a statement names whose first state is not
// all on disk yet.
func (m *Mirror) unwritten(ctx context.Context, statement string, limits sqlite.Limits) ([]string, error) {
	named := NamedInSQL(statement, m.SQLTables())
	if len(named) == 0 {
		return nil, nil
	}
	result, err := m.disk.DB.Query(ctx, askUnwritten, sqlite.Limits{Time: limits.Time})
	if err != nil {
		return nil, err
	}
	missing := map[any]bool{}
	for _, row := range result.Rows {
		missing[row[0]] = true
	}
	return slices.DeleteFunc(named, func(name string) bool { return name == recordTable || !missing[name] }), nil
}
