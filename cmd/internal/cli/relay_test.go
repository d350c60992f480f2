package cli

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tarnproject/tarn/apiserver"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

func TestRelay(t *testing.T) {
	origin, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(origin.Close)
	if err := origin.Put(pod("web-1", corev1.PodRunning)); err != nil {
		t.Fatal(err)
	}
	audit := filepath.Join(t.TempDir(), "audit.log")
	var errOut lockedBuffer
	app := newRig(t).app(nil, &errOut)
	app.connect = func() (*rest.Config, string, error) { return origin.Config(), "default", nil }
	ended := commandUntil(t.Context(), app, regexp.MustCompile(` at (https?://\S+/)$`), func(address string) {
		for {
			if status, _ := fetch(t, address+"readyz", ""); status == http.StatusOK {
				break
			}
		}
		if status, body := fetch(t, address+"api/v1/pods?resourceVersion=0", "a caller's token"); status != http.StatusOK || !strings.Contains(body, "web-1") {
			t.Errorf("%d %s", status, body)
		}
		if status, body := fetch(t, address+"api/v1/namespaces", "a caller's token"); status != http.StatusOK || !strings.Contains(body, "kube-system") {
			t.Errorf("%d %s", status, body)
		}
	}, "relay", "--listen=127.0.0.1:0", "pods", "--audit-log", audit, "--drain", "10ms")
	if ended.code != 0 || !strings.HasPrefix(ended.out, "Relaying 1 resource of ") || errOut.String() != "" {
		t.Errorf("ended with\n%s%s", ended, errOut.String())
	}
	text, err := os.ReadFile(audit)
	if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), "caller=tarn:everybody verb=list resource=pods") {
		t.Errorf("%v; the audit log is %s", err, text)
	}
}

// A relay of two namespaces refuses what it has only a part of.
func TestRelayNamespaces(t *testing.T) {
	origin, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(origin.Close)
	if err := origin.Put(pod("web-1", corev1.PodRunning)); err != nil {
		t.Fatal(err)
	}
	app := newRig(t).app(nil, &lockedBuffer{})
	app.connect = func() (*rest.Config, string, error) { return origin.Config(), "default", nil }
	ended := commandUntil(t.Context(), app, regexp.MustCompile(` at (https?://\S+/)$`), func(address string) {
		for {
			if status, _ := fetch(t, address+"readyz", ""); status == http.StatusOK {
				break
			}
		}
		for path, want := range map[string]string{
			"api/v1/pods?resourceVersion=0":                              "this relay has copies of the namespaces",
			"api/v1/namespaces/shop/pods?resourceVersion=0":              "PodList",
			"apis/apps/v1/namespaces/shop/deployments?resourceVersion=0": "DeploymentList",
		} {
			if _, body := fetch(t, address+path, "a caller's token"); !strings.Contains(body, want) {
				t.Errorf("%s: %s", path, body)
			}
		}
	}, "relay", "--listen=127.0.0.1:0", "pods", "-n", "shop,billing", "--drain", "10ms")
	if ended.code != 0 {
		t.Errorf("ended with\n%s", ended)
	}
}

func TestRelayOptions(t *testing.T) {
	r := newRig(t)
	for args, want := range map[string]string{
		"--listen=0.0.0.0:0": "in the clear", "--tls-cert-file=x": "belong together", "--past-megabytes=0": "1 or more", "--namespace=a,,b": "not a namespace", "--dir-megabytes=0": "1 or more", "--dir-past=0s": "a time such as",
		"--past=0s": "a time such as", "--listen=here": "host:port", "--listen=:0": "in the clear", "--listen=unix:": "the path of a socket", "--demo": "takes no arguments", "--caller-watches=0": "1 or more",
		"--client-ca=x": "needs --tls-cert-file", "--impersonate": "give --client-ca", "--metrics=here": "host:port", "--pprof": "needs --metrics", "--page=here": "host:port",
		"--page=0.0.0.0:0": "--page 0.0.0.0:0 can be reached from other machines", "--no-page-token --page=127.0.0.1:0 --page-token-file=x": "leave out --page-token-file",
	} {
		if ended := r.run(append([]string{"relay", "pods"}, strings.Fields(args)...)...); ended.code != exitUsage || !strings.Contains(ended.err, want) {
			t.Errorf("%s: %s", args, ended)
		}
	}
	if !namesSecrets([]string{"pods,secrets"}) || namesSecrets([]string{"all"}) {
		t.Error("whether Secrets are named")
	}
}

func TestRelaySocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relay.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listenForRelay("unix:" + path); err == nil {
		t.Fatal("a socket that somebody listens at is taken")
	}
	left.SetUnlinkOnClose(false)
	left.Close() // as if it had been killed

	origin, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(origin.Close)
	app := newRig(t).app(nil, &lockedBuffer{})
	app.connect = func() (*rest.Config, string, error) { return origin.Config(), "default", nil }
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}
	ended := commandUntil(t.Context(), app, regexp.MustCompile(` at (unix:\S+)$`), func(string) {
		resp, err := client.Get("http://relay/livez")
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%v, %v", resp, err)
			return
		}
		resp.Body.Close()
	}, "relay", "--listen=unix:"+path, "pods", "--drain", "10ms")
	if ended.code != 0 {
		t.Errorf("ended with\n%s", ended)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is still there")
	}
}

func TestRelayDemo(t *testing.T) {
	app := newRig(t).app(nil, &lockedBuffer{})
	ended := commandUntil(t.Context(), app, regexp.MustCompile(`^(100 clients of the relay), .* for each of 2 resources; [0-9,]{2,} events delivered, `), func(string) {},
		"relay", "--demo", "--listen=127.0.0.1:0", "--drain", "10ms")
	if ended.code != 0 || !strings.Contains(ended.out, "100 clients of the relay") {
		t.Errorf("ended with\n%s", ended)
	}
}

// Metrics, probes and the page have addresses of their own.
func TestRelayOperation(t *testing.T) {
	origin, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(origin.Close)
	for flag, test := range map[string]struct {
		line *regexp.Regexp
		path string
		want []string
	}{
		"--metrics=127.0.0.1:0":         {regexp.MustCompile(`^Metrics at (http://\S+/)metrics$`), "metrics", []string{"tarn_relay_ready 1", "process_cpu_seconds_total", "go_goroutines"}},
		"--metrics=127.0.0.1:0 --pprof": {regexp.MustCompile(`^Metrics at (http://\S+/)metrics$`), "debug/pprof/heap?gc=1&debug=1", []string{"# HeapAlloc = "}},
		"--page=127.0.0.1:0":            {regexp.MustCompile(`^The page: (http://\S+/)$`), "api/tables", []string{`"relay":{"origin":`, `"name":"pods"`}},
	} {
		app := newRig(t).app(nil, &lockedBuffer{})
		app.connect = func() (*rest.Config, string, error) { return origin.Config(), "default", nil }
		ended := commandUntil(t.Context(), app, test.line, func(address string) {
			for {
				if status, _ := fetch(t, address+"readyz", ""); status == http.StatusOK {
					break
				}
			}
			_, body := fetch(t, address+test.path, "")
			for _, want := range test.want {
				if !strings.Contains(body, want) {
					t.Errorf("%s: no %q in %s", flag, want, body)
				}
			}
		}, append([]string{"relay", "--listen=127.0.0.1:0", "pods", "--drain", "10ms", "--no-page-token"}, strings.Fields(flag)...)...)
		if ended.code != 0 {
			t.Errorf("%s ended with\n%s", flag, ended)
		}
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	var errOut lockedBuffer
	app := newRig(t).app(nil, &errOut)
	app.connect = func() (*rest.Config, string, error) { return origin.Config(), "default", nil }
	ended := commandUntil(t.Context(), app, regexp.MustCompile("^(Relaying)"), func(string) {}, "relay", "--listen=127.0.0.1:0", "pods", "--page=127.0.0.1:0", "--metrics="+busy.Addr().String())
	if ended.code == 0 || !strings.Contains(errOut.String(), "--metrics: the port is taken") {
		t.Errorf("ended with\n%s", ended)
	}
}
