package report

import (
	"slices"
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	parts := map[string]string{"table": "\n| a |\n", "ratio": "1.4"}
	document := "Text.\n\n<!-- bench table -->\n| old |\n| older |\n<!-- /bench -->\n\nUp to <!-- bench ratio -->9<!-- /bench --> times.\n"
	want := "Text.\n\n<!-- bench table -->\n| a |\n<!-- /bench -->\n\nUp to <!-- bench ratio -->1.4<!-- /bench --> times.\n"
	for range 2 { // filling a filled document changes nothing
		got, names, err := Fill([]byte(document), parts)
		if err != nil || string(got) != want || !slices.Equal(names, []string{"table", "ratio"}) {
			t.Fatalf("filled (%v, parts %q):\n%s\nwant:\n%s", err, names, got, want)
		}
		document = string(got)
	}
}

func TestFillRefuses(t *testing.T) {
	for document, want := range map[string]string{
		"<!-- bench other --><!-- /bench -->":                              `no generated part "other"`,
		"<!-- bench table --> text":                                        `"table" has no end`,
		"<!-- bench table --> <!-- bench table --> <!-- /bench --> <!-- x": `"table" has no end`,
		"<!-- bench table":                                                 "has no end",
	} {
		if _, _, err := Fill([]byte(document), map[string]string{"table": ""}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", document, err, want)
		}
	}
}
