package testsize

import (
	"crypto/rand"
	"flag"
	"testing"
)

func TestFlag(t *testing.T) {
	name := "tried" + rand.Text() // a flag can be defined once
	tried := Flag(name, 100, 10, "how much TestFlag tries")
	short := flag.Lookup("test.short").Value
	before := short.String()
	defer func() { _ = short.Set(before) }()
	for _, c := range []struct {
		short string
		want  int
	}{{"false", 100}, {"true", 10}} {
		if err := short.Set(c.short); err != nil {
			t.Fatal(err)
		}
		if got := tried(); got != c.want {
			t.Errorf("with -short=%s it is %d, want %d", c.short, got, c.want)
		}
	}
	if flag.Set(name, "x") == nil {
		t.Error("x is taken for a number")
	}
	if err := flag.Set(name, "7"); err != nil || tried() != 7 {
		t.Errorf("set to 7 it is %d, %v", tried(), err)
	}
}
