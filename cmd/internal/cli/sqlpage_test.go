package cli

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// The token goes to the page and to nobody else: not unencrypted to another machine,
// not to a proxy that nobody named, not where a redirect leads.
func TestPageTokenStaysPrivate(t *testing.T) {
	const token = "0123456789abcdef"
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, token+"\n")
	var requests atomic.Int32
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), token) || strings.Contains(r.Header.Get("Proxy-Authorization"), token) {
			requests.Add(1)
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	defer listener.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":"no"}`))
		case strings.HasPrefix(r.URL.Path, "/moved"):
			http.Redirect(w, r, listener.URL, http.StatusTemporaryRedirect)
		default:
			_, _ = w.Write([]byte("ok\n"))
		}
	}))
	defer page.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, listener.URL)
	}
	r := newRig(t)
	for _, test := range []struct {
		args  string
		env   string
		code  int
		words []string
	}{
		{"--from " + page.URL, token, 0, []string{"ok"}},
		{"--from " + page.URL + " --page-token-file " + file, "", 0, []string{"ok"}},
		{"--from " + page.URL, "", 1, []string{"wants a token", "TARN_PAGE_TOKEN", "--page-token-file"}},
		{"--from " + page.URL + "/moved", token, 1, []string{"307", listener.URL, "--from"}},
		{"--from http://page.example.com:8276", token, 2, []string{"unencrypted", "https"}},
		{"--from http://10.1.2.3:8276", token, 2, []string{"unencrypted", "https"}},
		{"--from http://127.0.0.1.example.com", token, 2, []string{"unencrypted"}},
		{"--from " + page.URL + "/#token=" + token, "", 2, []string{"other users can see command lines"}},
		{"--from http://" + token + "@127.0.0.1", "", 2, []string{"other users can see command lines"}},
		{"--from " + page.URL + " --page-proxy " + listener.URL, token, 2, []string{"the proxy would see the token"}},
		{"--from " + page.URL + " --page-proxy nowhere", "", 2, []string{"--page-proxy nowhere is not the address"}},
		// Without a token, a proxy that was named is used.
		{"--from http://page.example.com --page-proxy " + listener.URL, "", 1, []string{"418"}},
	} {
		r.env = map[string]string{}
		if test.env != "" {
			r.env[pageToken] = test.env
		}
		got := r.run(append([]string{"sql", "SELECT 1"}, strings.Fields(test.args)...)...)
		if err := got.check(test.code, test.words...); err != nil && !(test.code == 0 && got.code == 0 && got.out == "ok\n") {
			t.Errorf("%s: %v", test.args, err)
		}
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("the token was sent to somebody else %d times", n)
	}
}
