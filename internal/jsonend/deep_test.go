package jsonend

import (
	"strings"
	"testing"
)

// deeps are the ways to pass over blocks that this processor has.
var deeps = map[string]func(*state, []byte, *block) int{"deep": (*state).deep, "generic": (*state).deepGeneric}

// wantDeep checks that all ways to pass over blocks do the same, from every state.
func wantDeep(t failer, text []byte) {
	t.Helper()
	for _, depth := range []int{0, 1, 2, 3, 5, 1000} {
		for _, strings := range []uint64{0, allBits} {
			for escaped := range uint64(2) {
				begin := state{depth, strings, escaped}
				want, wantStop := begin, block{}
				wantN := want.deepGeneric(text, &wantStop)
				for name, deep := range deeps {
					got, stop := begin, block{}
					n := deep(&got, text[:len(text):len(text)], &stop)
					if n != wantN || got != want || (n+1)*blockSize <= len(text) && stop != wantStop {
						t.Fatalf("from %+v, %s passes over %d blocks of %q to %+v, and stops at %x; want %d, %+v, %x",
							begin, name, n, text, got, stop, wantN, want, wantStop)
					}
				}
			}
		}
	}
}

// BenchmarkDeep measures the loop over blocks, in all ways that this processor has, on what is
// like a part of a pod with its managed fields.
func BenchmarkDeep(b *testing.B) {
	part := `{"name":"main","image":"registry.example.com/team/app:v1.2.3","env":[{"name":"REGION","value":"eu"}],"ports":[{"containerPort":8080,"protocol":"TCP"}]},` +
		`{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"REGION\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{}}}},`
	text := []byte(strings.Repeat(part, 40))
	for name, deep := range deeps {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s, stop := state{depth: 1000}, block{}
				if n := deep(&s, text, &stop); n != len(text)/blockSize {
					b.Fatalf("stopped after %d blocks", n)
				}
			}
		})
	}
}
