package jsonend

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// failer is what *testing.T and *rapid.T have in common here.
type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// wantModel checks a Scan against the model, after each of the pieces in which a text arrives;
// cuts are where they end.
func wantModel(t failer, text []byte, cuts ...int) {
	t.Helper()
	var got Scan
	var want model
	for _, cut := range append(cuts, len(text)) {
		// The capacity ends with the piece: bytes beyond it are not there to be read.
		ended := got.Scan(text[:cut:cut])
		if ended != want.scan(text[:cut]) || got.Pos != want.pos || got.Children != want.children || got.Open != want.open || got.Close != want.close {
			t.Fatalf("with pieces that end at %v, after %d bytes of %q: ended %v, %+v, want %+v", cuts, cut, text, ended, got, want)
		}
	}
}

// wantAlways checks a text as a whole, byte by byte, in two pieces of all sizes, and in random
// ones; the ways to go through blocks, side by side; and a member of it.
func wantAlways(t failer, text []byte) {
	t.Helper()
	all := make([]int, len(text))
	for i := range all {
		all[i] = i
	}
	wantModel(t, text)
	wantModel(t, text, all...)
	for cut := range text {
		wantModel(t, text, cut)
	}
	dice := rand.New(rand.NewPCG(uint64(len(text)), 1))
	for range 4 {
		var cuts []int
		for at := dice.IntN(200); at < len(text); at += 1 + dice.IntN(200) {
			cuts = append(cuts, at)
		}
		wantModel(t, text, cuts...)
	}
	wantEnd(t, text)
	wantDeep(t, text)
	wantMember(t, text)
}

// wantEnd checks that a valid value ends where encoding/json says. Consume makes no
// difference.
func wantEnd(t failer, text []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	var raw json.RawMessage
	if d.Decode(&raw) != nil || raw[0] != text[0] { // space before the value is not part of it
		return
	}
	if raw[0] != '{' && raw[0] != '[' && raw[0] != '"' && (len(raw) == len(text) || !ends[text[len(raw)]]) {
		return // nothing says that a number has ended, or what follows it is malformed
	}
	var whole, gone Scan
	if !whole.Scan(text) || whole.Pos != len(raw) {
		t.Fatalf("%q ends at %d, want %d", text, whole.Pos, len(raw))
	}
	at := 0
	for next := 1; !gone.Scan(text[at:next]); next = min(next+71, len(text)) {
		gone.Consume()
		at = next
	}
	if at+gone.Pos != len(raw) {
		t.Fatalf("%q ends at %d if the bytes before are gone, want %d", text, at+gone.Pos, len(raw))
	}
}

// A valid value ends where encoding/json says, and everything that is found on the way is what
// the model finds.
func TestValidModel(t *testing.T) {
	words := rapid.SampledFrom([]string{"uid", `"`, `\`, `\\"`, "{", "}", "},{", `"}`, "y", "Y", "_", "\x7f", "ö", "\u2028", "[", "]", ":", ",", "plain text of some length", strings.Repeat(`\`, 63), strings.Repeat("x", 61)})
	texts := rapid.Custom(func(r *rapid.T) string {
		if rapid.IntRange(0, 3).Draw(r, "uid") == 0 {
			return "uid"
		}
		return strings.Join(rapid.SliceOfN(words, 0, 12).Draw(r, "words"), "")
	})
	var values *rapid.Generator[any]
	values = rapid.Custom(func(r *rapid.T) any {
		switch rapid.IntRange(0, 6).Draw(r, "kind") {
		case 0:
			return rapid.MapOfN(texts, values, 0, 4).Draw(r, "object")
		case 1:
			return rapid.SliceOfN(values, 0, 4).Draw(r, "array")
		case 2:
			return rapid.Float64().Draw(r, "number")
		case 3:
			return rapid.Bool().Draw(r, "bool")
		case 4:
			return nil
		}
		return texts.Draw(r, "text")
	})
	rapid.Check(t, func(r *rapid.T) {
		raw, err := json.Marshal(values.Draw(r, "value"))
		if err != nil {
			r.Fatal(err)
		}
		if rapid.Bool().Draw(r, "indented") {
			var b bytes.Buffer
			if err := json.Indent(&b, raw, " ", "\t"); err != nil {
				r.Fatal(err)
			}
			raw = b.Bytes()
		}
		raw = append(raw, rapid.SampledFrom([]string{"", `,{"a":1}]`, `]}`, " \n", `"`}).Draw(r, "rest")...)
		wantAlways(r, raw)
	})
}

// Malformed values are followed as the model follows them: brackets without partners, lost
// quotes, backslashes outside of strings, and values that do not end.
func TestMalformedModel(t *testing.T) {
	words := rapid.SampledFrom([]string{`"uid":`, `"uid" `, `{}`, `"`, `\`, `\\`, `\"`, "{", "}", "[", "]", "{[", "]}", `":"`, `","`, ",", "y", "Y", "_", "\x7f", "\xfb", "\xfd", "\xa2", "\xdc", "\x00", "#", "x", strings.Repeat(`\`, 63), strings.Repeat("x", 57), strings.Repeat("[", 70), strings.Repeat("}", 3)})
	rapid.Check(t, func(r *rapid.T) {
		first := rapid.SampledFrom([]string{"{", "[", `"`, `{"`, "[[[", "7"}).Draw(r, "first")
		wantAlways(r, []byte(first+strings.Join(rapid.SliceOfN(words, 0, 40).Draw(r, "words"), "")))
	})
}

// A run of backslashes of any length, anywhere in a block, escapes a quote if it is odd.
func TestRunsOfBackslashes(t *testing.T) {
	for before := range 130 {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 62, 63, 64, 65, 66, 127, 128, 129} {
			text := `{"` + strings.Repeat("x", before) + strings.Repeat(`\`, n) + `"}`
			want := n%2 == 0
			text += strings.Repeat(" ", 64)
			var s Scan
			if ended := s.Scan([]byte(text)); ended != want || ended && s.Pos != 4+before+n {
				t.Fatalf("after %d backslashes at %d, the object ends at %d (%v)", n, before+2, s.Pos, ended)
			}
			wantModel(t, []byte(text), before, before+n)
		}
	}
}

func TestNothing(t *testing.T) {
	var s Scan
	if s.Scan(nil) || s.Pos != 0 {
		t.Errorf("nothing has an end: %+v", s)
	}
	if s.Scan([]byte(",")); s.Pos != 0 {
		t.Errorf("a comma is a value: %+v", s)
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	text := []byte(`{"a":"` + strings.Repeat(`x\"`, 1000) + `"}`)
	if n := testing.AllocsPerRun(10, func() {
		var s Scan
		if !s.Scan(text) {
			t.Error("the object does not end")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzScan(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":"\\"}`, `{"a":"\""},{`, `{"metadata":{"uid":"}"},"y":[{}]}]}`, `{"` + strings.Repeat(`\\`, 40) + `":"{"}`, `{"` + strings.Repeat("y", 62) + `\"}":{}}`, `{\"` + strings.Repeat(" ", 70) + `}"}`, `"a\"b" `, "12,", "[[]", `{"f":{"a":{},"b":[{"uid":1}]},"uid" : 2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 0 && len(text) < 1<<10 {
			wantAlways(t, text)
		}
	})
}
