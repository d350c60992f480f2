package jsonend

import (
	"bytes"
	"strings"
	"testing"
)

// memberModel is what Member must find, by a loop over bytes. sound is false if a backslash is
// outside of strings: then Member may find nothing.
func memberModel(data []byte, name string) (value []byte, sound bool) {
	if len(data) == 0 || data[0] != '{' {
		return nil, true
	}
	depth, inString, sound := 1, false, true
	for i := 1; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			if inString = !inString; inString && depth == 1 && value == nil {
				value = memberAt(data[i:], name)
			}
		case inString:
		case c == '\\':
			sound = false
		case depth == 0: // the object has ended
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return value, sound
}

// memberAt is the value of the member that data begins with, if it has this name.
func memberAt(data []byte, name string) (value []byte) {
	const space = " \t\r\n"
	after, named := bytes.CutPrefix(data, []byte(name))
	after, colon := bytes.CutPrefix(bytes.TrimLeft(after, space), []byte(":"))
	if after = bytes.TrimLeft(after, space); named && colon && len(after) > 0 {
		return after
	}
	return nil
}

// wantMember checks Member against its model, on a text and on some of its beginnings.
func wantMember(t failer, text []byte) {
	t.Helper()
	const name = `"uid"`
	whole, sound := memberModel(text, name)
	for _, cut := range []int{len(text), len(text) / 2, len(text) - len(whole), len(text) - len(whole) + 1} {
		if cut > len(text) {
			continue
		}
		part := text[:cut:cut] // bytes beyond its capacity are not there to be read
		want, _ := memberModel(part, name)
		got := Member(part, name)
		if !bytes.Equal(got, want) && (sound || got != nil) {
			t.Fatalf("the value of %s in %q is at %q, want %q", name, part, got, want)
		}
	}
}

// A member is found at every place in a block, and nothing else is mistaken for it.
func TestMemberInEveryPlace(t *testing.T) {
	for before, found := range map[string]bool{
		"":                                       true,
		`"name":"uid","x":["uid",{"uid":"no"}],`: true,
		`"owners":[{"uid":"no"},{"uid":"no"}],`:  true,
		`"a\"uid":"no","text":",\"uid\":\"no",`:  true,
		`"f":{"k":{"k:{\"uid\":\"no\"}":{}}},`:   true,
		`"\\":{"\\\"":"}"},`:                     true,
		`"x":{}},{`:                              false, // the next object of an array
		`"x":1}],"y":{`:                          false,
		`"x":{`:                                  false,
	} {
		for pad := range 2*blockSize + 2 {
			for _, between := range []string{":", " \n: \t"} {
				text := `{"p":"` + strings.Repeat("x", pad) + `",` + before + `"uid"` + between + `"yes"}`
				want := ""
				if found {
					want = `"yes"}`
				}
				if got := Member([]byte(text), `"uid"`); string(got) != want {
					t.Fatalf("the uid of %s is at %q, want %q", text, got, want)
				}
				wantMember(t, []byte(text))
			}
		}
	}
}

func TestMemberDoesNotAllocate(t *testing.T) {
	text := []byte(`{"a":[` + strings.Repeat(`{"b":{}},`, 1000) + `{}],"uid":"x"}`)
	if n := testing.AllocsPerRun(10, func() {
		if Member(text, `"uid"`) == nil {
			t.Error("the uid is not found")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
