package kube

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// objectEnd is where the first object of a text ends, as encoding/json sees it; ok is false
// if there is no valid one.
func objectEnd(text []byte) (end int, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	var raw json.RawMessage
	if d.Decode(&raw) != nil || len(raw) == 0 || raw[0] != '{' {
		return 0, false
	}
	return int(d.InputOffset()), true
}

// skipIn skips an object that arrives in pieces, cut by next.
func skipIn(text []byte, next func(left int) int) (end int, ended bool) {
	s := objectSkip{}
	for end < len(text) && !ended {
		piece := text[end : end+next(len(text)-end)]
		var n int
		n, ended = s.skip(piece)
		end += n
	}
	return end, ended
}

// wantSkipped checks that an object ends where encoding/json says, however it arrives.
func wantSkipped(t interface {
	Helper()
	Fatalf(string, ...any)
}, text []byte) {
	t.Helper()
	want, ok := objectEnd(text)
	if !ok {
		return
	}
	dice := rand.New(rand.NewPCG(uint64(len(text)), 1))
	for name, next := range map[string]func(int) int{
		"as a whole":       func(left int) int { return left },
		"byte by byte":     func(int) int { return 1 },
		"in random pieces": func(left int) int { return 1 + dice.IntN(min(left, 200)) },
	} {
		if got, ended := skipIn(text, next); !ended || got != want {
			t.Fatalf("%s, the object ends at %d (%v), want %d:\n%s", name, got, ended, want, text)
		}
	}
}

// A skipped object ends where encoding/json says it ends.
func TestObjectSkipModel(t *testing.T) {
	words := rapid.SampledFrom([]string{`"`, `\`, `\\"`, "{", "}", "},{", `"}`, "y", "\x7f", "ö", "\u2028", "[", "]", ":", ",", "plain text of some length", strings.Repeat(`\`, 63), strings.Repeat("x", 61)})
	texts := rapid.Custom(func(r *rapid.T) string { return strings.Join(rapid.SliceOfN(words, 0, 12).Draw(r, "words"), "") })
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
		object := rapid.MapOfN(texts, values, 0, 6).Draw(r, "object")
		raw, err := json.Marshal(object)
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
		wantSkipped(r, append(raw, rapid.SampledFrom([]string{"", `,{"a":1}]`, `]}`, " \n", `"`}).Draw(r, "rest")...))
	})
}

// Objects of other shards are skipped in lists wherever reads end, and those between them
// are read.
func TestForeignItemsAreSkipped(t *testing.T) {
	var list bytes.Buffer
	list.WriteString(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[`)
	for i := range 40 {
		if i > 0 {
			list.WriteString(",\n")
		}
		name := "foreign"
		if i%5 == 0 {
			name = "ours"
		}
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": name}, "spec": strings.Repeat(`}"\{`, i)})
		if err != nil {
			t.Fatal(err)
		}
		list.Write(text)
	}
	list.WriteString("]}")
	for name, in := range map[string]io.Reader{
		"all": bytes.NewReader(list.Bytes()), "halves": iotest.HalfReader(bytes.NewReader(list.Bytes())), "bytes": iotest.OneByteReader(bytes.NewReader(list.Bytes())),
	} {
		f := newBodyBuffer(in, firstBlock)
		skipped := &skipper{}
		head, err := readList(f, mediaJSON, DefaultMaxItem, skipped)
		f.close()
		if err != nil || head.ResourceVersion != "7" {
			t.Errorf("%s: the list is %v (%v)", name, head, err)
		}
		// What is foreign shows only if enough of it has arrived.
		if skipped.ours != 8 || skipped.skipped+skipped.foreign != 32 || name == "all" && skipped.foreign > 0 {
			t.Errorf("%s: of 8 and 32 items, %d and %d were read, and %d skipped", name, skipped.ours, skipped.foreign, skipped.skipped)
		}
	}
}

// skipper skips the items that are called foreign.
type skipper struct{ ours, foreign, skipped int }

func (s *skipper) foreignStart(start []byte) bool {
	if !bytes.HasPrefix(start, []byte(`{"metadata":{"name":"foreign"`)) {
		return false
	}
	s.skipped++
	return true
}

func (s *skipper) item(f *bodyBuffer, n int) {
	if bytes.Contains(f.take(n), []byte(`"foreign"`)) {
		s.foreign++
	} else {
		s.ours++
	}
}

func (s *skipper) tooLong([]byte, int64, int64) {}
func (s *skipper) forget()                      {}

func FuzzObjectSkip(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":"\\"}`, `{"a":"\""},{`, `{"metadata":{"uid":"}"},"y":[{}]}]}`, `{"` + strings.Repeat(`\\`, 40) + `":"{"}`, `{"` + strings.Repeat("y", 62) + `\"}":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) { wantSkipped(t, text) })
}
