package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := pod("web-9", corev1.PodRunning)
		other.Namespace = "shop"
		r := newRig(t, pod("web-1", corev1.PodRunning), pod("web-2", corev1.PodRunning), other)
		for line, want := range map[string]string{
			"mir":                        "mirror",
			"get repl":                   "replicasets.apps replicationcontrollers",
			"get pods,serv":              "pods,serviceaccounts pods,servicecidrs.networking.k8s.io pods,services",
			"get pods web":               "web-1 web-2",
			"get pods web-1 web":         "web-2",
			"get pods/web":               "pods/web-1 pods/web-2",
			"get pods -n shop web":       "web-9",
			"get pods -n sh":             "shop",
			"watch po web-2":             "web-2",
			"mirror pods replicas":       "replicasets.apps",
			"query pods --continu":       "--continue",
			"query pods replicas":        "replicasets.apps",
			"bench endpoints":            "endpoints endpointslices.discovery.k8s.io",
			"get pods -o custom":         "custom-columns=",
			"get pods --log-level=d":     "debug",
			"mirror pods --history 24":   "24h,20GB",
			"sql --as-of 1":              "1m 10m 1h",
			"history pods/web":           "pods/web-1 pods/web-2",
			"history pods/web --since 1": "10m 1h",
			"replay replicas":            "replicasets.apps",
			"replay --speed 1":           "1 10",
			"completion z":               "zsh",
			"get nosuchthing we":         "",
			"get pods -l app=web --fiel": "--field-selector",
		} {
			got := r.run(append([]string{"__complete"}, strings.Split(line, " ")...)...)
			if names := completions(got.out); names != want || got.code != 0 {
				t.Errorf("%q is completed by %q, want %q", line, names, want)
			}
		}
		r.env = map[string]string{"TARN_NAMESPACE": "shop"}
		if names := completions(r.run("__complete", "get", "pods", "").out); names != "web-9" {
			t.Errorf("in the environment's namespace there is %q", names)
		}
	})
}

// completions are the names in the output for the shell's script.
func completions(out string) string {
	var names []string
	for line := range strings.Lines(out) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); name != "" && name[0] != ':' {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// Nobody wants to read an error, or wait, in the middle of a command line.
func TestCompletionIsSilentAboutFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.intercept = func(request *http.Request, _ http.RoundTripper) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		}
		began := time.Now()
		got := r.run("__complete", "get", "po")
		if took := time.Since(began); took > completionTimeout {
			t.Errorf("the shell waited for %v", took)
		}
		if completions(got.out) != "" || strings.Contains(got.err, "tarn:") || got.code != 0 {
			t.Errorf("it says\n%s", got)
		}
	})
}

func TestCompletionOfTheKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	write(t, file, `
apiVersion: v1
kind: Config
contexts: [{name: home, context: {}}, {name: work, context: {}}]
clusters: [{name: here, cluster: {server: "http://x"}}]
users: [{name: me}]
`)
	for flag, want := range map[string]string{"--context": "home work", "--cluster": "here", "--user": "me"} {
		if got := completions(alone(t, "__complete", "get", "--kubeconfig", file, flag, "").out); got != want {
			t.Errorf("%s is completed by %q, want %q", flag, got, want)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	r := newRig(t)
	for _, shell := range shells {
		if got := r.run("completion", shell); got.code != 0 || !strings.Contains(got.out, "__complete") {
			t.Errorf("the script for %s is\n%s", shell, got)
		}
	}
}
