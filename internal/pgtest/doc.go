// Package pgtest starts a real PostgreSQL server for a test, as an ordinary user, on a unix
// socket in a temporary directory.
package pgtest
