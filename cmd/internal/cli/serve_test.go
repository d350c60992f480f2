package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// serving runs serve until the function returns; address is where the page is.
func (r *rig) serving(do func(address string), args ...string) result {
	r.t.Helper()
	var errOut lockedBuffer
	ended := serving(r.t.Context(), r.app(nil, &errOut), do, args...)
	ended.err = errOut.String()
	return ended
}

func serving(ctx context.Context, a *app, do func(address string), args ...string) result {
	return servingUntil(ctx, a, regexp.MustCompile(` at (https?://\S+/)$`), do, args...)
}

// servingUntil looks for the address in what is printed.
func servingUntil(ctx context.Context, a *app, address *regexp.Regexp, do func(address string), args ...string) result {
	return commandUntil(ctx, a, address, do, append([]string{"serve", "--listen=127.0.0.1:0"}, args...)...)
}

func commandUntil(ctx context.Context, a *app, address *regexp.Regexp, do func(address string), args ...string) result {
	ctx, interrupt := context.WithCancel(ctx)
	defer interrupt()
	lines, out := io.Pipe()
	a.out = out
	ended := make(chan int, 1)
	go func() {
		ended <- a.main(ctx, args)
		out.Close()
	}()
	var said strings.Builder
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		said.WriteString(scanner.Text() + "\n")
		if found := address.FindStringSubmatch(scanner.Text()); found != nil {
			do(found[1])
			http.DefaultClient.CloseIdleConnections()
			interrupt()
		}
	}
	return result{code: <-ended, out: said.String()}
}

func fetch(t *testing.T, address, token string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(content)
}

func TestServe(t *testing.T) {
	r := newRig(t, pod("web-1", corev1.PodRunning), secret("key", "hunter2hunter2"))
	ended := r.serving(func(address string) {
		for { // until it is ready; each request takes its time
			if status, _ := fetch(t, address+"readyz", ""); status == http.StatusOK {
				break
			}
		}
		_, body := fetch(t, address+"api/tables", "")
		var overview struct{ Tables []struct{ Name string } }
		if err := json.Unmarshal([]byte(body), &overview); err != nil || len(overview.Tables) != 2 || overview.Tables[0].Name != "pods" {
			t.Errorf("%v in %s", err, body)
		}
		if _, body := fetch(t, address+"api/objects/secrets/default/key", ""); !strings.Contains(body, "(hidden)") || strings.Contains(body, "hunter2") || strings.Contains(body, "aHVudGVyM") {
			t.Errorf("the Secret is %s", body)
		}
		if status, _ := fetch(t, address+"debug/pprof/", ""); status != http.StatusNotFound {
			t.Errorf("profiles: %d", status)
		}
		if _, body := fetch(t, address+"metrics", ""); !strings.Contains(body, `tarn_objects{replica="pods"} 1`) {
			t.Errorf("metrics: %s", body)
		}
	}, "pods", "secrets", "--no-page-token")
	if ended.code != 0 || !strings.HasPrefix(ended.out, "Serving 2 resources of ") || ended.err != "" {
		t.Errorf("ended with\n%s", ended)
	}
}

// By default, the page requires a token, and only the printed link has it.
func TestServeMakesAToken(t *testing.T) {
	r := newRig(t, pod("web-1", corev1.PodRunning))
	log := filepath.Join(t.TempDir(), "access.log")
	statuses := map[string]int{}
	var said string
	r.serving(func(address string) {
		said = address
		statuses["nobody"], _ = fetch(t, address+"api/tables", "")
	}, "pods", "--access-log", log)
	if statuses["nobody"] != http.StatusUnauthorized {
		t.Errorf("without the token: %d at %s", statuses["nobody"], said)
	}
	text, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(text), "as=nobody method=GET") || !strings.Contains(string(text), "path=/api/tables status=401") {
		t.Errorf("%v; the access log is %s", err, text)
	}
	if info, err := os.Stat(log); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the access log can be read by others: %v, %v", info.Mode(), err)
	}

	ended := servingLink(t, r, func(link string) {
		address, token, _ := strings.Cut(link, "#token=")
		if status, _ := fetch(t, address+"api/tables", token); status != http.StatusOK {
			t.Errorf("with the token of the link: %d", status)
		}
	}, "pods")
	if ended.code != 0 || strings.Count(ended.out, "#token=") != 1 {
		t.Errorf("ended with\n%s", ended)
	}
}

// servingLink is serving for the link that signs in.
func servingLink(t *testing.T, r *rig, do func(link string), args ...string) result {
	t.Helper()
	return servingUntil(t.Context(), r.app(nil, &lockedBuffer{}), regexp.MustCompile(`^Sign in by this link: (https?://\S+)$`), do, args...)
}

func TestServeOptions(t *testing.T) {
	r := newRig(t, secret("key", "hunter2hunter2"))
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "a token from a file\n")
	for _, test := range []struct {
		token string
		env   map[string]string
		args  []string
	}{
		{token: "a token from a file", args: []string{"--page-token-file=" + token}},
		{token: "a token from the environment", env: map[string]string{"TARN_PAGE_TOKEN": "a token from the environment"}},
		{token: "a token from a file", env: map[string]string{"TARN_PAGE_TOKEN": "a token from the environment", "TARN_PAGE_TOKEN_FILE": token}},
	} {
		r.env = test.env
		r.serving(func(address string) {
			if status, _ := fetch(t, address+"api/tables", ""); status != http.StatusUnauthorized {
				t.Errorf("without the token: %d", status)
			}
			if status, _ := fetch(t, address+"api/tables", test.token); status != http.StatusOK {
				t.Errorf("with the token: %d", status)
			}
			if status, _ := fetch(t, address+"debug/pprof/", test.token); status != http.StatusOK {
				t.Errorf("profiles: %d", status)
			}
			for {
				if status, _ := fetch(t, address+"readyz", test.token); status == http.StatusOK {
					break
				}
			}
			if _, body := fetch(t, address+"api/objects/secrets/default/key", test.token); !strings.Contains(body, "aHVudGVyM") {
				t.Errorf("the Secret is %s", body)
			}
		}, append(test.args, "secrets", "--show-secrets", "--pprof")...)
	}
}

func TestServeMisuse(t *testing.T) {
	r := newRig(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	empty := filepath.Join(t.TempDir(), "empty")
	write(t, empty, " \n")
	short := filepath.Join(t.TempDir(), "short")
	write(t, short, "short\n")
	for _, test := range []struct {
		args  string
		code  int
		words []string
	}{
		{"--listen 0.0.0.0:0", 2, []string{"--listen 0.0.0.0:0 can be reached from other machines", "--tls-cert-file", "--page-token-file", "127.0.0.1"}},
		{"--listen nowhere", 2, []string{`--listen is host:port`, `"nowhere"`}},
		{"--listen 127.0.0.1:99999", 2, []string{`--listen: there is no port "99999"`, "65535"}},
		{"--listen 127.0.0.1:http", 2, []string{`--listen: there is no port "http"`}},
		{"--listen " + taken.Addr().String(), 1, []string{"--listen: the port is taken"}},
		{"--tls-cert-file none", 1, []string{"none", "cannot be used"}},
		{"--page-token-file none", 1, []string{"the token cannot be read", "--page-token-file"}},
		{"--page-token-file " + empty, 2, []string{"the token is empty", "openssl rand"}},
		{"--page-token-file " + short, 2, []string{"the token has 5 characters", "16 or more"}},
		{"--no-page-token --page-token-file " + empty, 2, []string{"--no-page-token lets everybody in"}},
		{"--no-page-token --listen 0.0.0.0:0", 2, []string{"--listen 0.0.0.0:0 can be reached from other machines", "--page-token-file"}},
		{"--session-life 0s", 2, []string{"--session-life is a time such as 12h"}},
		{"--access-log " + t.TempDir(), 1, []string{"--access-log", "is a directory"}},
		{"--fresh-within -1s", 2, []string{"--fresh-within is a time such as 3m"}},
		{"pots", 1, []string{`no resource "pots"`, "pods"}},
	} {
		args := append([]string{"serve", "pods"}, strings.Fields(test.args)...)
		if err := r.run(args...).check(test.code, test.words...); err != nil {
			t.Errorf("%s: %v", test.args, err)
		}
	}
}
