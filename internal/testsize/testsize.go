// Package testsize chooses how much a test tries.
//
// make test runs every test with the race detector and -short, in a small form. make proofs
// runs the same tests without either, in their full form.
package testsize

import (
	"flag"
	"strconv"
	"testing"
)

// Of is full, or short in tests that run with -short.
func Of(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// Flag defines a flag that chooses a number. The function returns what the flag was set to;
// without it, what Of returns.
//
// The default cannot be a plain flag's: flags are defined before -short is parsed.
func Flag(name string, full, short int, usage string) func() int {
	n := number{full: full, short: short}
	flag.Var(&n, name, usage+" (default "+strconv.Itoa(full)+", with -short "+strconv.Itoa(short)+")")
	return func() int {
		if n.set {
			return n.value
		}
		return Of(n.full, n.short)
	}
}

// number is the value of such a flag.
type number struct {
	full, short, value int
	set                bool
}

func (n *number) String() string {
	if !n.set {
		return ""
	}
	return strconv.Itoa(n.value)
}

func (n *number) Set(text string) (err error) {
	n.value, err = strconv.Atoi(text)
	n.set = err == nil
	return err
}
