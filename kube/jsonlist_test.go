package kube

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tarnproject/tarn/internal/jsonend"
)

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

func (s *skipper) foreignStart(start []byte) (int, bool) {
	const begin = `{"metadata":{"name":"foreign"`
	if !bytes.HasPrefix(start, []byte(begin)) {
		return 0, false
	}
	s.skipped++
	return len(begin), true
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

// FuzzPeek looks into objects of any form: one that is skipped from where its uid ends, has the
// same end as one that is followed from its beginning.
func FuzzPeek(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"uid":"a"}}`,
		`{"apiVersion":"v1","metadata":{"labels":{"a":"}"},"managedFields":[{"f:x":{"k:{\"uid\":\"b\"}":{}}}],"uid":"a"},"spec":{"x":["]"]}},{}`,
		`{"a":1.5,"metadata" : { "name" : "\\" , "uid" : "a" , "x":[` + strings.Repeat(`{"y":"}"},`, 30) + `{}]},"status":{}}]}`,
		`{"a":\"metadata":{"uid":"a"}}`, `{"metadata":{"uid":"a"`, `{,"a"::}{"metadata":{"uid":""}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, name := range jsonKeys {
			value, rest, found := peekJSON(text, name)
			if !found || text[0] != '{' {
				continue
			}
			var whole jsonend.Scan
			after := jsonend.Within(2)
			seen := len(text) - len(rest)
			if !bytes.HasSuffix(text[:seen], append(bytes.Clone(value), '"')) {
				t.Fatalf("%q is not where %q has been looked at", value, text[:seen])
			}
			if ended := whole.Scan(text); ended != after.Scan(rest) || whole.Pos != seen+after.Pos {
				t.Fatalf("%q ends at %d (%v), and from %d on at %d", text, whole.Pos, ended, seen, seen+after.Pos)
			}
			// Where no name is there twice, it is what a decoder reads.
			var object, metadata map[string]json.RawMessage
			once := bytes.Count(text, []byte(`"metadata"`)) == 1 && bytes.Count(text, []byte(name)) == 1 && !bytes.Contains(text, []byte(`\u`))
			if once && json.Unmarshal(text, &object) == nil && json.Unmarshal(object["metadata"], &metadata) == nil {
				if got := string(metadata[strings.Trim(name, `"`)]); got != `"`+string(value)+`"` {
					t.Fatalf("%s of %q is %s, not %q", name, text, got, value)
				}
			}
		}
	})
}
