package fieldpath_test

import (
	"testing"

	"github.com/tarnproject/tarn/fieldpath"
)

func TestEnd(t *testing.T) {
	for text, want := range map[string]string{
		"spec.nodeName=node-1":           "spec.nodeName",
		"spec.nodeName":                  "spec.nodeName",
		"":                               "",
		"=x":                             "",
		"metadata.labels['a=b, c']=d":    "metadata.labels['a=b, c']",
		`metadata.labels["a]=\""] = d`:   `metadata.labels["a]=\""]`,
		"spec.containers[0].image,other": "spec.containers[0].image",
		"it's,fine":                      "it's",
		"a],b":                           "a]",
		`a['\`:                           `a['\`,
	} {
		if got := text[:fieldpath.End(text, "=, ")]; got != want {
			t.Errorf("the path of %q is %q, want %q", text, got, want)
		}
	}
}
