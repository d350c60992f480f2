//go:build !unix

package sqlite

import "github.com/ncruces/go-sqlite3"

// sqliteMemory cannot be protected here.
type sqliteMemory struct{}

func memoryOf(*sqlite3.Conn) sqliteMemory { return sqliteMemory{} }

func (sqliteMemory) protect() bool { return false }

func (sqliteMemory) release() {}
