package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/cmd/internal/term/termtest"
)

// alone runs a command line without a rig: what it finds of a cluster, it finds
// by flags and files.
func alone(t *testing.T, args ...string) result {
	t.Helper()
	var out, errOut lockedBuffer
	a := &app{
		program: "tarn", in: strings.NewReader(""), out: &out, errOut: &errOut, getenv: os.LookupEnv,
		terminal: func() (term.Terminal, bool) { return nil, false },
	}
	code := a.main(t.Context(), args)
	return result{code, out.String(), errOut.String()}
}

// check reports what is wrong with the answer to a mistake: it must be one line that says
// what to do, with an exit code.
func (r result) check(code int, words ...string) error {
	if r.code != code || r.out != "" || strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "tarn: ") || strings.Contains(r.err, "goroutine ") {
		return fmt.Errorf("want one line and code %d, got\n%s", code, r)
	}
	for _, word := range words {
		if !strings.Contains(r.err, word) {
			return fmt.Errorf("%q is not in %q", word, r.err)
		}
	}
	return nil
}

// nowhere is an address at which nobody listens.
func nowhere(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// What could not be printed is an error, in all formats.
func TestOutputThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning))
		for _, args := range [][]string{
			{"get", "pods"}, {"get", "pods", "-o", "wide"}, {"get", "pods", "-o", "name"}, {"get", "pods", "-o", "yaml"}, {"get", "pods", "-o", "custom-columns=A:.metadata.name"},
			{"query", "pods"}, {"query", "pods", "--count"}, {"get", "--help"}, {"version"},
		} {
			var errOut lockedBuffer
			if code := r.app(full{}, &errOut).main(t.Context(), args); code != exitFailed || !strings.Contains(errOut.String(), "no space left") {
				t.Errorf("%q: %d %s", args, code, errOut.String())
			}
		}
	})
}

func TestClustersThatCannotBeFound(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("HOME", folder)
	t.Setenv("KUBECONFIG", "")
	broken := filepath.Join(folder, "broken")
	write(t, broken, "{")
	empty := filepath.Join(folder, "empty")
	write(t, empty, "kind: Config\n")
	const contexts = `
contexts:
- {name: home, context: {cluster: here, user: me, namespace: shop}}
- {name: work, context: {cluster: gone, user: me}}
users:
- {name: me}
`
	config, undecided := filepath.Join(folder, "config"), filepath.Join(folder, "undecided")
	write(t, config, contexts+"current-context: home\nclusters: [{name: here, cluster: {server: 'http://"+nowhere(t)+"'}}]\n")
	write(t, undecided, contexts)
	for _, command := range []string{"get pods", "watch pods", "mirror pods", "bench pods", "verify pods", "serve pods", "query pods"} {
		for _, test := range []struct {
			flags string
			code  int
			words []string
		}{
			{"", 1, []string{"no cluster is configured", "--kubeconfig", "KUBECONFIG", `"tarn demo"`}},
			{"--kubeconfig=" + folder + "/none", 1, []string{"/none", "no such file", "check --kubeconfig"}},
			{"--kubeconfig=" + empty, 1, []string{"there is no cluster in the kubeconfig " + empty, "--kubeconfig", "--server"}},
			{"--kubeconfig=" + broken, 1, []string{"the kubeconfig is of no use", "check --kubeconfig"}},
			{"--kubeconfig=" + config, 1, []string{"cannot reach the server at http://127.0.0.1:", "connection refused", "is it running?"}},
			{"--kubeconfig=" + undecided, 1, []string{"no current context", "--context", "home, work"}},
			{"--kubeconfig=" + config + " --context=hone", 1, []string{`no context "hone" (did you mean home?)`, "home, work"}},
			{"--kubeconfig=" + config + " --context=work", 1, []string{`context "work" names the cluster "gone"`, "no server", "--server"}},
			{"--server=http://" + nowhere(t), 1, []string{"cannot reach the server", "is it running?", "--server"}},
			{"--server=http://no.such.host.invalid", 1, []string{"cannot reach the server at http://no.such.host.invalid", "check the network"}},
			{"--server=http://x --request-timeout=soon", 2, []string{"--request-timeout is a time such as 10s", `"soon"`}},
		} {
			args := append(strings.Fields(command), strings.Fields(test.flags)...)
			code := test.code
			if command == "verify pods" {
				code = 2 // 1 says that something differs
			}
			if err := alone(t, args...).check(code, test.words...); err != nil {
				t.Errorf("%s %s: %v", command, test.flags, err)
			}
		}
	}
	for _, contexts := range []string{"work", "*"} {
		if err := alone(t, "mirror", "pods", "-A", "--contexts", contexts).check(1, "--contexts: there is no context", "in the kubeconfig", "check --kubeconfig"); err != nil {
			t.Errorf("--contexts %s: %v", contexts, err)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestServersThatDoNotLetOneIn(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	server, err := apiserver.Start(apiserver.Options{TLS: true, Tokens: []string{"right"}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for flags, words := range map[string][]string{
		"--token=right": {"certificate", "check the cluster's certificate-authority"},
		"--token=wrong --insecure-skip-tls-verify": {"the server does not accept the credentials: cannot ask https://", "log in again", "--token"},
	} {
		args := append([]string{"get", "pods", "--server=" + server.URL()}, strings.Fields(flags)...)
		if err := alone(t, args...).check(1, words...); err != nil {
			t.Errorf("%s: %v", flags, err)
		}
	}
	if err := alone(t, "verify", "pods", "--server="+server.URL(), "--token=wrong", "--insecure-skip-tls-verify").check(2, "the server does not accept the credentials: cannot ask"); err != nil {
		t.Error(err)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if err := alone(t, "get", "pods", "--server="+other.URL).check(1, "is it the API server of a cluster?", "--server"); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "config")
	config, err := server.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(config))
	if got := alone(t, "get", "namespaces", "--kubeconfig", file, "-o", "name"); got.code != 0 || !strings.Contains(got.out, "namespace/default\n") {
		t.Errorf("with the right kubeconfig:\n%s", got)
	}
	t.Setenv("KUBECONFIG", file)
	if got := alone(t, "get", "namespaces", "-o", "name"); got.code != 0 || !strings.Contains(got.out, "namespace/default\n") {
		t.Errorf("with KUBECONFIG:\n%s", got)
	}
}

func TestCommandLinesThatCannotBeMeant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, test := range []struct {
			line  string
			code  int
			words []string
		}{
			{"gte pods", 2, []string{`there is no command "gte" (did you mean get?)`, `"tarn --help"`}},
			{"frobnicate", 2, []string{`there is no command "frobnicate"; "tarn --help" lists all`}},
			{"get pods --namespac=x", 2, []string{"there is no flag --namespac (did you mean namespace?)", `"tarn get --help"`}},
			{"get pods -Z", 2, []string{"there is no flag -Z", `"tarn get --help"`}},
			{"get pods --sort-by", 2, []string{"--sort-by"}},
			{"get pods --log-level=loud", 2, []string{"--log-level is debug, info, warn or error", `"loud"`}},
			{"get pods --log-format=xml", 2, []string{"--log-format is text or json", `"xml"`}},
			{"help gte", 2, []string{`there is no command "gte" (did you mean get?)`}},
			{"get pods -w -o yaml", 2, []string{"-o of watch can only be wide"}},
			{"watch", 2, []string{"say which resources", "tarn watch pods"}},
			{"watch pods -o yaml", 2, []string{"-o of watch can only be wide", `"tarn get --help"`}},
			{"watch podz", 1, []string{`no resource "podz"`, "did you mean pods?"}},
			{"watch pods nope", 1, []string{`pods "nope" not found in namespace "default"`}},
			{"watch pods/nope --diff", 1, []string{`pods "nope" not found in namespace "default"`}},
			{"mirror podz", 1, []string{`no resource "podz"`, "did you mean pods?"}},
			{"mirror pods --interval=0s", 2, []string{"--interval is a time such as 10s"}},
			{"mirror pods --history 24h", 2, []string{"--history is kept in a directory", "--to"}},
			{"serve pods --history 24h", 2, []string{"--history is kept in a directory", "--to"}},
			{"mirror pods --to nowhere --history soon", 2, []string{`"soon" is neither an age such as 24h or 7d, nor a size`}},
			{"mirror pods --to nowhere --history 24h,1KB", 2, []string{"1KB is too small"}},
			{"history", 2, []string{"say which resources"}},
			{"history pod/web-1", 2, []string{"name it with --from"}},
			{"history pod/web-1 --from nowhere", 1, []string{"--from: nowhere holds no replica"}},
			{"history pod/web-1 --from nowhere -o csv", 2, []string{"-o is json"}},
			{"replay", 2, []string{"name it with --from"}},
			{"replay --from nowhere", 2, []string{"say from when on: --since 1h"}},
			{"replay --from nowhere --since 1h", 1, []string{"--from: nowhere holds no replica"}},
			{"replay --from nowhere --since 1h --speed -1", 2, []string{"--speed is 0 or more"}},
			{"replay --from nowhere --since 1h --until 2h", 2, []string{"--until 2h is not after --since 1h"}},
			{"replay --from nowhere --since 1h --api-listen 0.0.0.0:0", 2, []string{"--api-listen"}},
			{"get pods --from nowhere --as-of never", 2, []string{`--as-of "never" is not a time`}},
			{"query pods --as-of 10m", 2, []string{"name it with --from"}},
			{"get pods --field-selector=spec.nope=x", 1, []string{"--field-selector: field label not supported: spec.nope", `"tarn query --where"`}},
			{"mirror pods -l ,", 2, []string{"--selector", "app=web"}},
			{"bench pods --rounds=0", 2, []string{"--rounds is a number from 1 on"}},
			{"bench pods -o yaml", 2, []string{"-o is json"}},
			{"bench-child", 2, []string{`"tarn bench"`}},
			{"version please", 2, []string{`"tarn version" takes no arguments`, `"please"`}},
			{"version -o yaml", 2, []string{"-o is json"}},
			{"completion", 2, []string{"say for which shell", "bash, zsh, fish, powershell"}},
			{"completion fihs", 2, []string{`no completion for "fihs" (did you mean fish?)`}},
		} {
			if err := r.run(strings.Fields(test.line)...).check(test.code, test.words...); err != nil {
				t.Errorf("%s: %v", test.line, err)
			}
		}
	})
}

func TestTerminalTooSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.screen = termtest.New(39, 4)
		for _, line := range []string{"watch pods", "mirror pods", "demo"} {
			if err := r.run(strings.Fields(line)...).check(1, "the terminal is too small", "enlarge it"); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	})
}

func TestForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.intercept = refuse("pods", http.StatusForbidden, "Forbidden", `pods is forbidden: User "ops" cannot list resource "pods"`)
		if err := r.run("get", "pods").check(1, `User "ops" cannot list`, "-n", "granted"); err != nil {
			t.Error(err)
		}
	})
}

// A command that is interrupted says so; see also the views, whose
// end is Ctrl-C.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.intercept = func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		}
		for _, line := range []string{"get pods", "query pods", "bench pods", "mirror pods", "watch pods"} {
			got := r.during(func(*lockedBuffer) { time.Sleep(time.Second) }, strings.Fields(line)...)
			if got.code != exitInterrupted || got.err != "tarn: interrupted\n" {
				t.Errorf("%s ended with\n%s", line, got)
			}
		}
	})
}
