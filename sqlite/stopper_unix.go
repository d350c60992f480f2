//go:build unix

package sqlite

import (
	"reflect"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"
)

// sqliteMemory is all memory that SQLite uses for a connection: one mapping, which does
// not move.
type sqliteMemory []byte

// memoryOf finds the memory of a connection; nil if the library has changed.
func memoryOf(conn *sqlite3.Conn) sqliteMemory {
	v := reflect.ValueOf(conn)
	for _, field := range []string{"wrp", "Memory", "Buf"} {
		if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return nil
		}
		if v = v.Elem().FieldByName(field); !v.IsValid() {
			return nil
		}
	}
	if v.Kind() != reflect.Slice || v.Type().Elem().Kind() != reflect.Uint8 {
		return nil
	}
	all := v.Bytes()
	return all[:cap(all)]
}

// protect makes every access to the memory a fault, and reports whether it could.
func (m sqliteMemory) protect() bool { return len(m) > 0 && unix.Mprotect(m, unix.PROT_NONE) == nil }

// release gives the memory back to the system.
func (m sqliteMemory) release() { _ = unix.Munmap(m) } // after a failure it is just not reused
