package main

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// In virtual time, because the copy waits a moment before it asks again.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		const want = `on stock: [3 kettle 7 teapot]
one sold, left: 2
kettle: 2, then 1
kettle: sold out
on stock: [7 teapot]
trouble: articles: watch from 5: closed for lunch
on stock: [10 kettle 7 teapot]
trouble: <nil>
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
