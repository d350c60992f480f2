package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Every state of an object is shown, in lines, by fields and as JSON, with gaps in their
// places.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPastRig(t)
		time.Sleep(time.Hour)
		var b strings.Builder
		for _, args := range [][]string{
			{"history", "pod/web-1"},
			{"history", "pods", "web-1", "web-2", "--diff"},
			{"history", "node/node-1"},
			{"history", "pods/web-2", "--diff", "--since", at(r.gap)},
			{"history", "pods/web-2", "--since", "10m"},
			{"history", "pod/web-2", "--diff", "-o", "json"},
			{"history", "pod/web-3"},
			{"history", "pods/web-1", "-n", "other"},
			{"history", "pods"},
			{"history", "services/web"},
			{"history", "pods/web-1", "-o", "yaml"},
			{"history", "pods/web-1", "--since", "noon"},
		} {
			b.WriteString("$ tarn " + strings.Join(args, " ") + "\n")
			b.WriteString(r.ask(args...).String() + "\n")
		}
		golden(t, "history", steady(strings.ReplaceAll(b.String(), r.dir, "replica")))
	})
}

// Values of Secrets are hidden in the past as well.
func TestHistoryOfSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, secret("s", "topsecret"))
		dir := filepath.Join(t.TempDir(), "replica")
		r.during(func(*lockedBuffer) {
			time.Sleep(5 * time.Second)
			r.put(secret("s", "changed"))
			time.Sleep(5 * time.Second)
		}, "mirror", "secrets", "--to", dir, "--with-secrets", "--history", "24h")
		line := []string{"history", "secret/s", "--from", dir}
		if got := r.run(append(line, "--diff")...); got.code != 0 || !strings.Contains(got.out, "values that are hidden may differ; --show-secrets shows them") {
			t.Errorf("it says\n%s", got)
		}
		if got := r.run(append(line, "-o", "json")...); strings.Contains(got.out, "dG9wc2VjcmV0") || strings.Count(got.out, "(hidden)") < 2 {
			t.Errorf("in JSON it says\n%s", got)
		}
		if got := r.run(append(line, "--diff", "--show-secrets")...); !strings.Contains(got.out, "data.password: ") || !strings.Contains(got.out, "dG9wc2VjcmV0") {
			t.Errorf("with --show-secrets it says\n%s", got)
		}
	})
}
