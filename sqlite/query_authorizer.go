package sqlite

import (
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// authorizer allows only statements that read, and records which collections they read.
type authorizer struct {
	// refused is the first thing that was not allowed.
	refused string
	// read holds the ids of the collections whose tables the statement reads. SQLite asks
	// for each table by its own name, even behind a view, alias or subquery.
	read map[int64]bool
	// present has the collections whose content the statement reads, past those whose log it
	// reads. whole has those whose log it reads as a whole, by a view with the suffix
	// _history.
	present, past, whole map[int64]bool
	// building allows the views of the past, which package sqlite makes itself before the
	// statement is compiled.
	building bool
}

// note records that a statement reads a table of a collection.
func (a *authorizer) note(table, view string) {
	id, ok := collectionOf(table)
	if !ok {
		return
	}
	if a.read == nil {
		a.read, a.present, a.past, a.whole = map[int64]bool{}, map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
	}
	a.read[id] = true
	if slices.ContainsFunc(presentTables, func(prefix string) bool { return strings.HasPrefix(table, prefix) }) {
		a.present[id] = true
		return
	}
	a.past[id] = true
	if strings.HasSuffix(strings.ToLower(view), historySuffix) {
		a.whole[id] = true
	}
}

// forbidden holds the functions that have side effects, and those that take quadratic
// time.
var forbidden = map[string]bool{
	"load_extension": true, "fts3_tokenizer": true, "readfile": true, "writefile": true, "edit": true, "sqlite_log": true,
	"decimal_mul": true, "decimal_pow2": true, "json_patch": true, "jsonb_patch": true,
}

func (a *authorizer) authorize(action sqlite3.AuthorizerActionCode, third, fourth, schema, inner string) sqlite3.AuthorizerReturnCode {
	switch action {
	case sqlite3.AUTH_SELECT, sqlite3.AUTH_RECURSIVE:
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_READ:
		a.note(third, inner)
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_CREATE_TEMP_VIEW, sqlite3.AUTH_INSERT, sqlite3.AUTH_UPDATE:
		if a.building && (action == sqlite3.AUTH_CREATE_TEMP_VIEW || strings.HasPrefix(strings.ToLower(third), "sqlite_temp_")) {
			return sqlite3.AUTH_OK
		}
	case sqlite3.AUTH_FUNCTION:
		if !forbidden[strings.ToLower(fourth)] {
			return sqlite3.AUTH_OK
		}
		third = fourth
	}
	if a.refused == "" {
		a.refused = actionName(action)
		if third != "" {
			a.refused += " of " + third
		}
	}
	return sqlite3.AUTH_DENY
}

// actionName describes a refused action.
func actionName(action sqlite3.AuthorizerActionCode) string {
	names := map[sqlite3.AuthorizerActionCode]string{
		sqlite3.AUTH_INSERT: "an INSERT", sqlite3.AUTH_UPDATE: "an UPDATE", sqlite3.AUTH_DELETE: "a DELETE",
		sqlite3.AUTH_ATTACH: "an ATTACH", sqlite3.AUTH_DETACH: "a DETACH", sqlite3.AUTH_PRAGMA: "a PRAGMA",
		sqlite3.AUTH_TRANSACTION: "a transaction", sqlite3.AUTH_SAVEPOINT: "a SAVEPOINT", sqlite3.AUTH_FUNCTION: "the use",
		sqlite3.AUTH_ANALYZE: "an ANALYZE", sqlite3.AUTH_REINDEX: "a REINDEX", sqlite3.AUTH_ALTER_TABLE: "an ALTER",
	}
	if name, ok := names[action]; ok {
		return name
	}
	return "a change"
}
