package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestRun(t *testing.T) {
	defer goleak.VerifyNone(t)
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	const want = `north is founded
  north: created
south is founded
  south: created
somebody deletes the rules of north
  north: created
somebody has other rules for south
  south: restored
the rules of south: be kind
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What the example says: one line was changed.
func TestOneLineIsOurs(t *testing.T) {
	source, err := os.ReadFile("controller.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(source, []byte("tarn")); n != 2 { // module path: tarnproject/tarn
		t.Errorf("controller.go names tarn %d times; its import path alone does so twice", n)
	}
}
