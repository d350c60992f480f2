package jetstream

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
)

func TestKeysReadWell(t *testing.T) {
	for key, want := range map[tarn.Key]string{
		"default/web-1": "default.web-1", "node_1": "node_1", "a.example.com": "a=2Eexample=2Ecom",
		"_tarn/checkpoint": "=5Ftarn.checkpoint", "": "=", "a//b": "a.=.b", "/": "=.=", "a=b c": "a=3Db=20c", "ä*>": "=C3=A4=2A=3E",
	} {
		if have := escapeKey(key); have != want {
			t.Errorf("%q is %q, want %q", key, have, want)
		}
	}
}

var validKey = regexp.MustCompile(`^[-_=a-zA-Z0-9]+(\.[-_=a-zA-Z0-9]+)*$`)

// A key and its form in the bucket can be derived from each other, whatever they are.
func FuzzKey(f *testing.F) {
	for _, text := range []string{"default/web", "_tarn.checkpoint", "=5F", "a.b", "=", "a..b", "=2e", "a=", "\x00/\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		escaped := escapeKey(tarn.Key(text))
		if key, err := unescapeKey(escaped); err != nil || string(key) != text {
			t.Errorf("%q is %q in the bucket, and read back %q (%v)", text, escaped, key, err)
		}
		if !validKey.MatchString(escaped) || strings.HasPrefix(escaped, "_") {
			t.Errorf("%q is %q in the bucket, which is no key for an object", text, escaped)
		}
		if key, err := unescapeKey(text); err == nil && escapeKey(key) != text {
			t.Errorf("%q is read as %q, which is %q in the bucket", text, key, escapeKey(key))
		}
	})
}
