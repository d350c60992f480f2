//go:build unix

package sqlite

import (
	"reflect"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"
)

// sqliteMemory is all that SQLite works in on behalf of a connection: one mapping, which
// does not move.
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

// takeAway makes every access to the memory a fault, and says whether it could.
func (m sqliteMemory) takeAway() bool { return len(m) > 0 && unix.Mprotect(m, unix.PROT_NONE) == nil }

// release gives the memory back to the system.
func (m sqliteMemory) release() { _ = unix.Munmap(m) } // it is of no use in any case
