package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tarnproject/tarn/fieldpath"
)

type item struct {
	Node string   `json:"node,omitempty"`
	Size int      `json:"size,omitempty"`
	Tags []string `json:"tags,omitempty"`
	// Metadata is where labels are.
	Metadata struct {
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Extra map[string]any `json:"extra,omitempty"`
}

var selectorSeeds = []string{
	"", "a", "!a", "a=b", "a==b", "a!=b", "a in (b,c)", "a notin (b, c)", "a in (b", "a in ()", "a=", "a,b", "a,,b", "a>1", "a<2", "a>x", "a=b,c!=d,e in (f),!g,h", " a = b ", "a b", "(a)", "=a", "a in (,b)",
	"\x00", "a=b\x00,c", "example.com/x=1", "a=in", "in in (in)", "a!", "a notin b", "!a=b",
}

// FuzzSelector compares label selectors with apimachinery's: what it accepts is
// accepted, and matches the same.
func FuzzSelector(f *testing.F) {
	for _, seed := range selectorSeeds {
		f.Add(seed)
	}
	sets := []map[string]string{nil, {"a": ""}, {"a": "b"}, {"a": "c", "b": "x"}, {"a": "1"}, {"a": "3", "c": "d"}, {"example.com/x": "1", "in": "in", "h": "", "e": "f", "c": "x"}}
	f.Fuzz(func(t *testing.T, text string) {
		theirs, err := labels.Parse(text)
		q := Where().Labels(text)
		if err != nil {
			return // ours accepts more: names and values of any letters
		}
		if strings.Contains(text, "\x00") { // theirs silently stops reading here
			if q.err == nil {
				t.Fatalf("%q is taken", text)
			}
			return
		}
		if q.err != nil {
			t.Fatalf("%q is refused: %v", text, q.err)
		}
		for _, set := range sets {
			o := &item{}
			o.Metadata.Labels = set
			ours := true
			for _, c := range q.conditions {
				values, err := c.path.Append(nil, o)
				if err != nil {
					t.Fatal(err)
				}
				ours = ours && c.holds(values)
			}
			if want := theirs.Matches(labels.Set(set)); ours != want {
				t.Fatalf("%q (%v) on %v: %v, apimachinery says %v", text, q, set, ours, want)
			}
		}
	})
}

// FuzzFieldSelector does the same for field selectors.
func FuzzFieldSelector(f *testing.F) {
	for _, seed := range append(selectorSeeds, "node=a,size!=3", "node=", "node!=", "size=3", "tags[*]=x", "extra['x,y']=(") {
		f.Add(seed)
	}
	objects := []*item{{}, {Node: "a"}, {Node: "b", Size: 3}, {Size: 10}}
	f.Fuzz(func(t *testing.T, text string) {
		q := Where().Fields(text)
		theirs, err := fields.ParseSelector(text)
		if err != nil || q.err != nil {
			return
		}
		for _, r := range theirs.Requirements() {
			if r.Field != "node" && r.Field != "size" || strings.ContainsAny(r.Value, ` \=,!<>()[]'"`+"\t\r\n") {
				return
			}
		}
		for _, o := range objects {
			size := ""
			if o.Size > 0 {
				size = fmt.Sprint(o.Size)
			}
			ours := true
			for _, c := range q.conditions {
				values, err := c.path.Append(nil, o)
				if err != nil {
					return
				}
				ours = ours && c.holds(values)
			}
			if want := theirs.Matches(fields.Set{"node": o.Node, "size": size}); ours != want {
				t.Fatalf("%q (%v) on %+v: %v, apimachinery says %v", text, q, o, ours, want)
			}
		}
	})
}

// FuzzToken reads any text as a continue token: an accepted token is one that the
// query itself made, and is written again unchanged.
func FuzzToken(f *testing.F) {
	q := Where().Sort("size", "-node")
	f.Add(cursor{q.fingerprint(), []fieldpath.Value{fieldpath.IntValue(2), fieldpath.StringValue("n")}, "8"}.String())
	f.Add("")
	f.Add("AQ")
	f.Add(cursor{q.fingerprint(), nil, "k"}.String())
	f.Add(cursor{q.fingerprint(), []fieldpath.Value{fieldpath.StringValue("x"), {}}, ""}.String())
	f.Fuzz(func(t *testing.T, token string) {
		c, err := parseCursor(token)
		if err == nil {
			if again, err := parseCursor(c.String()); err != nil || again.query != c.query || again.key != c.key || !slices.Equal(again.values, c.values) {
				t.Fatalf("%q is read as %+v, and that as %+v, %v", token, c, again, err)
			}
		}
		asked := q.After(token)
		if _, err := asked.token(); token != "" && err == nil && (c == nil || c.query != q.fingerprint() || len(c.values) != 2) {
			t.Fatalf("%q was taken", token)
		}
	})
}
