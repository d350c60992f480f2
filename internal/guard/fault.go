package guard

import (
	"errors"
	"fmt"
)

// Fault returns what a recovered panic says if it is a write to a frozen object, in a
// goroutine that asked for panics instead of the end of the process.
func Fault(recovered any) (message string, ok bool) {
	err, isError := recovered.(error)
	var fault interface{ Addr() uintptr }
	if !isError || !errors.As(err, &fault) {
		return "", false
	}
	what, known := Explain(fault.Addr())
	if !known {
		return "", false
	}
	return fmt.Sprintf("guard mode: a write to %s, which is in a cache; copy an object before you change it", what), true
}
