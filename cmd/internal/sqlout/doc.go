// Package sqlout writes the answers of SQL statements for people and programs to read:
// as a table, as JSON, as CSV. It also says which tables of an answer lack something.
//
// Why it is not part of package sqlite: the store gives typed values and knows nothing
// of terminals and pages, so a change of a format changes the program alone.
package sqlout
