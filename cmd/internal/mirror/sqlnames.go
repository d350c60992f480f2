package mirror

import (
	"regexp"
	"slices"
	"strings"
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

// Unwritten are the tables that a statement names whose first state is not all on disk
// yet: they seem to be empty. Ask before the statement is answered.
func (m *Mirror) Unwritten(statement string) ([]string, error) {
	if m.disk == nil {
		return nil, errNoDisk
	}
	named := NamedInSQL(statement, m.SQLTables())
	if len(named) == 0 {
		return nil, nil
	}
	held, err := m.disk.DB.Holdings()
	if err != nil {
		return nil, err
	}
	missing := map[string]bool{}
	for _, h := range held {
		missing[h.Name] = !h.Whole && h.Version == ""
	}
	return slices.DeleteFunc(named, func(name string) bool { return name == recordTable || !missing[name] }), nil
}
