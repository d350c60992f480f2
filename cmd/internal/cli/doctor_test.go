package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/doctor"
	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/sqlite"
)

// examined is what doctor says, as text and as JSON, which must not differ.
type examined struct {
	code    int
	text    string
	results []doctor.Result
}

// is compares a check with what it should be: its status, and words of its line.
func (e examined) is(check string, status doctor.Status, words ...string) error {
	i := slices.IndexFunc(e.results, func(r doctor.Result) bool { return r.Check == check })
	if i < 0 {
		return fmt.Errorf("there is no check %q in\n%s", check, e.text)
	}
	r := e.results[i]
	if r.Status != status {
		return fmt.Errorf("%s is %q, not %q, in\n%s", check, r.Status, status, e.text)
	}
	for _, word := range words {
		if !strings.Contains(r.Found+"; "+r.Advice, word) {
			return fmt.Errorf("%s does not say %q in\n%s", check, word, e.text)
		}
	}
	return nil
}

// examine runs doctor both ways.
func examine(t *testing.T, run func(args ...string) result, args ...string) examined {
	t.Helper()
	text := run(append([]string{"doctor"}, args...)...)
	data := run(append([]string{"doctor", "-o", "json"}, args...)...)
	var report doctorReport
	if err := json.Unmarshal([]byte(data.out), &report); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	if data.code != text.code || report.OK != (text.code == 0) || strings.Count(text.out, "\n") != len(report.Checks) {
		t.Errorf("text and JSON differ:\n%s\n%s", text, data)
	}
	for i, line := range strings.Split(strings.TrimSpace(text.out), "\n") {
		want := string(report.Checks[i].Status)
		if want == "fail" {
			want = "FAIL"
		}
		if fields := strings.Fields(line); fields[0] != want || fields[1] != report.Checks[i].Check {
			t.Errorf("the line %q is of %+v", line, report.Checks[i])
		}
	}
	return examined{text.code, text.String(), report.Checks}
}

func (e examined) failed() (names []string) {
	for _, r := range e.results {
		if r.Status == doctor.Fail {
			names = append(names, r.Check)
		}
	}
	return names
}

// A server in the process has no network; all that is asked of it is answered.
func TestDoctor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning))
		got := examine(t, r.run)
		if got.code != exitOK {
			t.Errorf("it ends with %d:\n%s", got.code, got.text)
		}
		for _, err := range []error{
			got.is("kubeconfig", doctor.OK, "tarn.invalid"), got.is("tls", doctor.Skip), got.is("authentication", doctor.OK, "tarn:everybody"),
			got.is("clock", doctor.Skip, "does not tell"), got.is("version", doctor.OK, "server v1.36.0-tarn"),
			got.is("resources", doctor.OK, "pods", "deployments.apps"), got.is("rights", doctor.OK, "may list and watch"),
			got.is("watchlist", doctor.OK), got.is("bookmarks", doctor.OK), got.is("compression", doctor.Skip, "128 KiB"), got.is("shards", doctor.OK, "knows shard selectors"),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		got = examine(t, r.run, "pods,nodes", "-n", "shop")
		if !strings.Contains(got.text, "may list and watch pods in shop\n") || !strings.Contains(got.text, "may list and watch nodes\n") || strings.Contains(got.text, "deployments") {
			t.Errorf("of named resources it says\n%s", got.text)
		}
		if got := examine(t, r.run, "pods", "-A"); !strings.Contains(got.text, "may list and watch pods\n") {
			t.Errorf("of all namespaces it says\n%s", got.text)
		}
	})
}

// Long lists show whether they are compressed.
func TestDoctorSeesCompression(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 20 {
			long := pod(fmt.Sprintf("web-%d", i), corev1.PodRunning)
			long.Annotations = map[string]string{"long": strings.Repeat("x", 10_000)}
			r.put(long)
		}
		if err := examine(t, r.run, "pods").is("compression", doctor.OK, "gzip"); err != nil {
			t.Error(err)
		}
		r.intercept = func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
			request = request.Clone(request.Context())
			request.Header.Del("Accept-Encoding")
			return next.RoundTrip(request)
		}
		if err := examine(t, r.run, "pods").is("compression", doctor.Warn, "not compressed"); err != nil {
			t.Error(err)
		}
	})
}

// Refusals and defects of a server are reported with advice.
func TestDoctorOfServersThatAreNotWell(t *testing.T) {
	dated := func(off time.Duration) func(*http.Request, http.RoundTripper) (*http.Response, error) {
		return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Header = response.Header.Clone()
				response.Header.Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
			}
			return response, err
		}
	}
	answering := func(suffix, body string) func(*http.Request, http.RoundTripper) (*http.Response, error) {
		return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, suffix) {
				return next.RoundTrip(r)
			}
			recorder := httptest.NewRecorder()
			recorder.Header().Set("Content-Type", "application/json")
			recorder.WriteString(body)
			return recorder.Result(), nil
		}
	}
	// initial changes how a watch with initial events is answered.
	initial := func(answer func(*http.Request, http.RoundTripper) (*http.Response, error)) func(*http.Request, http.RoundTripper) (*http.Response, error) {
		return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if r.URL.Query().Get("sendInitialEvents") == "" {
				return next.RoundTrip(r)
			}
			return answer(r, next)
		}
	}
	review := func(verb string) string {
		return fmt.Sprintf(`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"verb":%q}},"status":{"allowed":false,"reason":"no role"}}`, verb)
	}
	for name, c := range map[string]struct {
		intercept func(*http.Request, http.RoundTripper) (*http.Response, error)
		check     string
		status    doctor.Status
		words     []string
		code      int
	}{
		"clock that is right":  {dated(time.Second), "clock", doctor.OK, nil, exitOK},
		"clock that is ahead":  {dated(10 * time.Minute), "clock", doctor.Warn, []string{"10m", "ahead", "NTP"}, exitOK},
		"clock that is behind": {dated(-time.Hour), "clock", doctor.Warn, []string{"1h0m", "behind"}, exitOK},
		"old server":           {answering("/version", `{"gitVersion":"v1.21.4"}`), "version", doctor.Warn, []string{"v1.21.4", "docs/versions.md"}, exitOK},
		"no API server":        {answering("/version", `<html>`), "version", doctor.Fail, []string{"is it the API server"}, exitProblems},
		"anonymous":            {answering("/selfsubjectreviews", `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":"system:anonymous"}}}`), "authentication", doctor.Warn, []string{"--token"}, exitOK},
		"credentials refused":  {refuse("selfsubjectreviews", http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"), "authentication", doctor.Fail, []string{"401", "log in again"}, exitProblems},
		"no reviews":           {refuse("selfsubjectreviews", http.StatusNotFound, metav1.StatusReasonNotFound, "not found"), "authentication", doctor.OK, []string{"cannot say who"}, exitOK},
		"nothing may be read":  {answering("/selfsubjectaccessreviews", review("list")), "rights", doctor.Fail, []string{"may not list and watch pods in default", "no role", "grant list and watch"}, exitProblems},
		"rights not told":      {refuse("selfsubjectaccessreviews", http.StatusForbidden, metav1.StatusReasonForbidden, "no"), "rights", doctor.Warn, []string{"does not say what is allowed"}, exitOK},
		"WatchList refused": {initial(func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
			return statusResponse(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents: Forbidden"), nil
		}), "watchlist", doctor.Warn, []string{"422", "lists instead"}, exitOK},
		"WatchList unknown": {initial(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			r = r.Clone(r.Context())
			query := r.URL.Query()
			query.Del("sendInitialEvents")
			query.Del("resourceVersionMatch")
			r.URL.RawQuery = query.Encode()
			return next.RoundTrip(r)
		}), "watchlist", doctor.Warn, []string{"ignores sendInitialEvents"}, exitOK},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, pod("web-1", corev1.PodRunning))
				r.intercept = c.intercept
				got := examine(t, r.run, "pods")
				if err := got.is(c.check, c.status, c.words...); err != nil || got.code != c.code {
					t.Errorf("it ends with %d: %v", got.code, err)
				}
				if c.check == "watchlist" {
					if err := got.is("bookmarks", doctor.OK); err != nil {
						t.Error(err)
					}
				}
				if name == "credentials refused" {
					if err := got.is("watchlist", doctor.Skip, "authentication failed"); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// For a user who may list and not watch, the missing verb is reported.
func TestDoctorOfForbiddenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		asked := 0
		r.intercept = func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err != nil || !strings.HasSuffix(request.URL.Path, "/selfsubjectaccessreviews") {
				return response, err
			}
			if asked++; asked%2 == 1 {
				return response, nil // list
			}
			response.Body.Close()
			recorder := httptest.NewRecorder()
			recorder.Header().Set("Content-Type", "application/json")
			recorder.WriteString(`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":false}}`)
			return recorder.Result(), nil
		}
		got := examine(t, r.run, "pods")
		if err := got.is("rights", doctor.Fail, "may not watch pods in default"); err != nil || got.code != exitProblems {
			t.Errorf("it ends with %d: %v", got.code, err)
		}
		if err := got.is("watchlist", doctor.Skip, "nothing that may be"); err != nil {
			t.Error(err)
		}
	})
}

// A server that does not answer costs a deadline for each check, and no more.
func TestDoctorDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.intercept = func(request *http.Request, _ http.RoundTripper) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		}
		begun := time.Now()
		got := r.run("doctor", "--timeout", "3s")
		if took := time.Since(begun); took > 10*time.Second || got.code != exitProblems {
			t.Errorf("it took %s:\n%s", took, got)
		}
		if !strings.Contains(got.out, "no answer within 3s") || !strings.Contains(got.out, "skip  watchlist") {
			t.Errorf("it says\n%s", got)
		}
	})
}

// Ctrl-C ends it at once. What was interrupted is no failure of the server's.
func TestDoctorIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.intercept = func(request *http.Request, _ http.RoundTripper) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		}
		begun := time.Now()
		got := r.during(func(*lockedBuffer) { time.Sleep(time.Second) }, "doctor")
		if took := time.Since(begun); took > 2*time.Second || got.code != exitInterrupted || strings.Contains(got.out, "FAIL") || !strings.Contains(got.out, "ok    kubeconfig") {
			t.Errorf("after %s it says\n%s", took, got)
		}
	})
}

// asUser runs doctor as a user does, with a kubeconfig.
func asUser(t *testing.T, kubeconfig string) func(args ...string) result {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", kubeconfig)
	return func(args ...string) result {
		var out, errOut lockedBuffer
		a := &app{
			program: "tarn", in: strings.NewReader(""), out: &out, errOut: &errOut,
			getenv:   func(string) (string, bool) { return "", false },
			terminal: func() (term.Terminal, bool) { return nil, false },
		}
		code := a.main(t.Context(), args)
		return result{code, out.String(), errOut.String()}
	}
}

// listening starts a server, and writes a kubeconfig that change may change.
func listening(t *testing.T, options apiserver.Options, change func(*clientcmdapi.Config)) (kubeconfig string) {
	t.Helper()
	server, err := apiserver.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	content, err := server.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(config)
	}
	kubeconfig = filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// Over a network, names, connections and certificates are checked too.
func TestDoctorOverTheNetwork(t *testing.T) {
	secured := apiserver.Options{TLS: true, Tokens: []string{"0123456789abcdef"}}
	got := examine(t, asUser(t, listening(t, secured, nil)), "pods")
	if got.code != exitOK {
		t.Fatalf("it ends with %d:\n%s", got.code, got.text)
	}
	for _, err := range []error{
		got.is("kubeconfig", doctor.OK, `context "tarn"`, `namespace "default"`, "server https://127.0.0.1:"), got.is("dns", doctor.OK, "127.0.0.1"),
		got.is("tcp", doctor.OK, "answers in"), got.is("tls", doctor.OK, "TLS 1.3", "certificate until"), got.is("authentication", doctor.OK),
		got.is("clock", doctor.OK), got.is("watchlist", doctor.OK),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	garbage := filepath.Join(t.TempDir(), "garbage")
	write(t, garbage, "][")
	for name, c := range map[string]struct {
		kubeconfig string
		check      string
		words      []string
	}{
		"no kubeconfig":   {filepath.Join(t.TempDir(), "none"), "kubeconfig", []string{"no kubeconfig", "--kubeconfig"}},
		"garbage":         {garbage, "kubeconfig", []string{"of no use"}},
		"nobody listens":  {listening(t, secured, func(c *clientcmdapi.Config) { c.Clusters["tarn"].Server = "https://" + nowhere(t) }), "tcp", []string{"refused", "is the server running"}},
		"no such host":    {listening(t, secured, func(c *clientcmdapi.Config) { c.Clusters["tarn"].Server = "https://nobody.invalid" }), "dns", []string{"nobody.invalid has no address"}},
		"other authority": {listening(t, secured, func(c *clientcmdapi.Config) { c.Clusters["tarn"].CertificateAuthorityData = nil }), "tls", []string{"unknown authority", "certificate-authority"}},
		"other token":     {listening(t, secured, func(c *clientcmdapi.Config) { c.AuthInfos["tarn"].Token = "another" }), "authentication", []string{"401"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := examine(t, asUser(t, c.kubeconfig), "pods")
			if err := got.is(c.check, doctor.Fail, c.words...); err != nil {
				t.Error(err)
			}
			if got.code != exitProblems || len(got.failed()) != 1 {
				t.Errorf("it ends with %d, and not only %s failed:\n%s", got.code, c.check, got.text)
			}
			if err := got.is("watchlist", doctor.Skip, c.check+" failed"); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("plain", func(t *testing.T) {
		if err := examine(t, asUser(t, listening(t, apiserver.Options{}, nil)), "pods").is("tls", doctor.Warn, "not encrypted"); err != nil {
			t.Error(err)
		}
	})
	t.Run("insecure", func(t *testing.T) {
		insecure := func(c *clientcmdapi.Config) {
			c.Clusters["tarn"].CertificateAuthorityData, c.Clusters["tarn"].InsecureSkipTLSVerify = nil, true
		}
		if err := examine(t, asUser(t, listening(t, secured, insecure)), "pods").is("tls", doctor.Warn, "not verified"); err != nil {
			t.Error(err)
		}
	})
}

// A directory is checked whether the server answers or not.
func TestDoctorOfDirectories(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	used, err := sqlite.Open(in("used"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	for _, name := range []string{"sound", "newer", "older", "oldest", "open"} {
		db, err := sqlite.Open(in(name), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tamper(t, in("newer"), "PRAGMA user_version=99")
	tamper(t, in("older"), "PRAGMA user_version=4")
	tamper(t, in("oldest"), "PRAGMA user_version=1")
	if err := os.Chmod(in("open"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, in("file"), "no directory")
	r := newRig(t)
	for name, c := range map[string]struct {
		check  string
		status doctor.Status
		words  []string
		code   int
	}{
		"sound":  {"format", doctor.OK, []string{"the current one"}, exitOK},
		"new":    {"directory", doctor.OK, []string{"does not exist; it is made"}, exitOK},
		"used":   {"lock", doctor.Fail, []string{"another process has", "end the mirror"}, exitProblems},
		"newer":  {"format", doctor.Fail, []string{"newer Tarn"}, exitProblems},
		"older":  {"format", doctor.Warn, []string{"converts the file"}, exitOK},
		"oldest": {"format", doctor.Warn, []string{"rebuilds the file"}, exitOK},
		"open":   {"directory", doctor.Fail, []string{"open to others (mode 0755)", "chmod 700"}, exitProblems},
		"file":   {"directory", doctor.Fail, []string{"is not a directory"}, exitProblems},
	} {
		got := examine(t, r.run, "pods", "--to", in(name))
		if err := got.is(c.check, c.status, c.words...); err != nil || got.code != c.code {
			t.Errorf("%s: it ends with %d: %v", name, got.code, err)
		}
		if err := got.is("space", doctor.OK, "MiB free"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(in("new")); err == nil {
		t.Error("the directory was made")
	}
}

func TestDoctorUsage(t *testing.T) {
	for _, args := range [][]string{{"doctor", "-o", "xml"}, {"doctor", "--timeout", "0"}} {
		if err := newRig(t).run(args...).check(exitUsage); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
	if err := examine(t, newRig(t).run, "podz").is("resources", doctor.Fail, "podz", "did you mean"); err != nil {
		t.Error(err)
	}
}
