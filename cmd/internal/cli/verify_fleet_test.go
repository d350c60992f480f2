package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarnproject/tarn/verify"
)

// Several clusters are compared, each under its name. One that is unreachable makes the whole
// doubtful, is named, and keeps no other from being compared.
func TestVerifyFleet(t *testing.T) {
	dir := t.TempDir()
	east, west := startCluster(t, "web-1"), startCluster(t, "web-1", "web-2")
	leadTo(t, filepath.Join(dir, "east.yaml"), east)
	leadTo(t, filepath.Join(dir, "west.yaml"), west)
	r := newRig(t)
	verified := func(code int, want ...string) string {
		t.Helper()
		result := r.run("verify", "pods", "namespaces", "-A", "--kubeconfig-dir", dir)
		if result.code != code {
			t.Errorf("it ends with %d, want %d:\n%s%s", result.code, code, result.out, result.err)
		}
		lines := strings.Split(result.out, "\n")
		for i, line := range lines {
			lines[i] = strings.Join(strings.Fields(line), " ")
		}
		text := strings.Join(lines, "\n")
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("it does not say %q:\n%s", part, text)
			}
		}
		return text
	}
	all := verified(exitOK, "CLUSTER RESOURCE OBJECTS VERSION DIGEST VERDICT", "east pods 1 ", "west pods 2 ")
	if n := strings.Count(all, " equal"); n != 4 {
		t.Errorf("%d tables are equal, want 4:\n%s", n, all)
	}

	away := startCluster(t)
	leadTo(t, filepath.Join(dir, "away.yaml"), away)
	away.Close()
	verified(exitUnknown, "away pods,namespaces 0 - - unknown", "away: pods,namespaces:\n", "east pods 1 ", "west pods 2 ")

	result := r.run("verify", "pods", "-A", "--kubeconfig-dir", dir, "-o", "json")
	var found struct {
		Verdict verify.Verdict
		Results []struct {
			Cluster, Name string
			Objects       int
		}
	}
	if err := json.Unmarshal([]byte(result.out), &found); err != nil || found.Verdict != verify.Unknown || len(found.Results) != 3 || found.Results[2].Cluster != "west" || found.Results[2].Objects != 2 {
		t.Errorf("in JSON it says %+v (%v)", found, err)
	}
	for args, want := range map[string]string{
		"verify pods --contexts a,b":             "say -A or -n NAMESPACE",
		"verify pods -A --contexts a,b --from d": "--from is compared with one cluster",
	} {
		if err := r.run(strings.Fields(args)...).check(exitUsage, want); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}
