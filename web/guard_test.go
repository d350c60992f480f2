package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

const testToken = "0123456789abcdef"

func TestReadOnly(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PROPFIND"} {
		for _, path := range []string{"/", "/api/tables", "/api/session", "/healthz", "/metrics"} {
			answer := r.ask(path, func(r *http.Request) { r.Method = method })
			if answer.Code != http.StatusMethodNotAllowed || answer.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d", method, path, answer.Code)
			}
		}
	}
	if answer := r.ask("/api/tables", func(r *http.Request) { r.Method = http.MethodHead }); answer.Code != http.StatusOK {
		t.Errorf("HEAD: %d", answer.Code)
	}
}

// A name that was bound to our address by somebody else is not ours.
func TestHost(t *testing.T) {
	r := newRig(t, rigOptions{web: Options{Hosts: []string{"tarn.example.com"}}})
	for name, want := range map[string]int{
		"localhost": 200, "localhost:8276": 200, "LOCALHOST:1": 200, "tarn.localhost": 200, "127.0.0.1:8276": 200, "127.1.2.3": 200, "[::1]:8276": 200, "[::1]": 200,
		"tarn.example.com": 200, "TARN.example.com:443": 200,
		"evil.example.com": 403, "localhost.evil.com": 403, "127.0.0.1.evil.com": 403, "evil.com:8276": 403, "10.0.0.7:8276": 403, "0.0.0.0:8276": 403, "": 403,
		"tarn.example.com.evil.com": 403, "localhost:1:2": 403, "xlocalhost": 403,
	} {
		for _, path := range []string{"/", "/api/tables", "/metrics", "/static/app.js"} {
			if answer := r.ask(path, host(name)); answer.Code != want {
				t.Errorf("Host %q %s: %d, want %d", name, path, answer.Code, want)
			}
		}
	}
}

// Pages of other sites get nothing. Their links may lead to the page.
func TestOrigin(t *testing.T) {
	r := newRig(t, rigOptions{})
	link := []func(*http.Request){header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "navigate"), header("Sec-Fetch-Dest", "document")}
	for _, test := range []struct {
		name       string
		change     []func(*http.Request)
		data, page int
	}{
		{"curl", nil, 200, 200},
		{"our page", []func(*http.Request){header("Sec-Fetch-Site", "same-origin")}, 200, 200},
		{"the address bar", []func(*http.Request){header("Sec-Fetch-Site", "none")}, 200, 200},
		{"another site", []func(*http.Request){header("Sec-Fetch-Site", "cross-site")}, 403, 403},
		{"another port", []func(*http.Request){header("Sec-Fetch-Site", "same-site")}, 403, 403},
		{"something new", []func(*http.Request){header("Sec-Fetch-Site", "whatever")}, 403, 403},
		{"a link", link, 403, 200},
		{"a frame", append(link[:2:2], header("Sec-Fetch-Dest", "iframe")), 403, 403},
		{"an old browser, our page", []func(*http.Request){header("Origin", "http://localhost:8276")}, 200, 200},
		{"an old browser, another site", []func(*http.Request){header("Origin", "http://evil.example.com")}, 403, 403},
		{"an old browser, another port", []func(*http.Request){header("Origin", "http://localhost:1")}, 403, 403},
		{"an old browser, another scheme", []func(*http.Request){header("Origin", "https://localhost:8276")}, 403, 403},
		{"an opaque origin", []func(*http.Request){header("Origin", "null")}, 403, 403},
	} {
		for path, want := range map[string]int{"/api/tables": test.data, "/api/tables/pods": test.data, "/metrics": test.data, "/t/pods": test.page} {
			if answer := r.ask(path, test.change...); answer.Code != want {
				t.Errorf("%s, %s: %d, want %d", test.name, path, answer.Code, want)
			}
		}
	}
}

func TestToken(t *testing.T) {
	r := newRig(t, rigOptions{web: Options{Token: testToken, Profiles: true}})
	private := []string{"/api/tables", "/api/tables/pods", "/api/objects/pods/a/b", "/api/problems", "/api/events", "/api/session", "/metrics", "/debug/pprof/", "/api/other"}
	for name, change := range map[string]func(*http.Request){
		"nothing":                    func(*http.Request) {},
		"another token":              header("Authorization", "Bearer "+testToken+"x"),
		"a beginning":                header("Authorization", "Bearer "+testToken[:8]),
		"empty":                      header("Authorization", "Bearer "),
		"Basic":                      header("Authorization", "Basic "+testToken),
		"a cookie":                   header("Cookie", "tarn=rubbish"),
		"the token itself as cookie": header("Cookie", "tarn="+testToken),
		"in the address":             func(r *http.Request) { r.URL.RawQuery = "token=" + testToken },
	} {
		for _, path := range private {
			answer := r.ask(path, change)
			if answer.Code != http.StatusUnauthorized || !strings.HasPrefix(answer.Header().Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s with %s: %d", path, name, answer.Code)
			}
		}
	}
	for _, path := range []string{"/", "/t/pods", "/static/app.js", "/healthz", "/readyz"} {
		if answer := r.ask(path); answer.Code != http.StatusOK {
			t.Errorf("%s needs no token: %d", path, answer.Code)
		}
	}
	// With the token in the header no foreign page can be behind the request.
	if answer := r.ask("/metrics", header("Authorization", "Bearer "+testToken), host("10.1.2.3:8276")); answer.Code != http.StatusOK {
		t.Errorf("Prometheus by address: %d", answer.Code)
	}
}

func TestSession(t *testing.T) {
	r := newRig(t, rigOptions{web: Options{Token: testToken}})
	for _, secure := range []bool{false, true} {
		overTLS := func(q *http.Request) {
			if secure {
				q.TLS = httptest.NewRequest("GET", "https://localhost/", nil).TLS
			}
		}
		answer := r.ask("/api/session", header("Authorization", "Bearer "+testToken), overTLS)
		cookies := answer.Result().Cookies()
		if answer.Code != http.StatusNoContent || len(cookies) != 1 {
			t.Fatalf("%d, cookies %v", answer.Code, cookies)
		}
		c := cookies[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != secure || c.Path != "/" || c.Domain != "" || strings.Contains(c.Value, testToken) {
			t.Errorf("the cookie is %v", c)
		}
		if secure != strings.HasPrefix(c.Name, "__Host-") {
			t.Errorf("the cookie is called %s", c.Name)
		}
		withCookie := func(q *http.Request) { q.AddCookie(c) }
		if answer := r.ask("/api/tables", withCookie, overTLS); answer.Code != http.StatusOK {
			t.Errorf("with the cookie: %d", answer.Code)
		}
		if answer := r.ask("/api/tables", withCookie, overTLS, host("evil.example.com")); answer.Code != http.StatusForbidden {
			t.Errorf("with the cookie, by another name: %d", answer.Code)
		}
		if answer := r.ask("/api/tables", withCookie, overTLS, header("Sec-Fetch-Site", "cross-site")); answer.Code != http.StatusForbidden {
			t.Errorf("with the cookie, from another site: %d", answer.Code)
		}
	}
}

func TestHeaders(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, path := range []string{"/", "/static/app.js", "/api/tables", "/none", "/healthz"} {
		h := r.ask(path).Header()
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, h.Get(name))
			}
		}
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: no %s in %q", path, want, csp)
			}
		}
		if strings.Contains(csp, "unsafe") || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: too much is allowed: %v", path, h)
		}
	}
	if h := r.ask("/api/tables").Header(); h.Get("Cache-Control") != "no-store" {
		t.Errorf("data may be kept: %q", h.Get("Cache-Control"))
	}
}

// The page has no inline script or style, which the policy would refuse, and
// loads nothing from elsewhere.
func TestFiles(t *testing.T) {
	r := newRig(t, rigOptions{})
	entries, err := static.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		answer := r.ask("/static/" + entry.Name())
		text := answer.Body.String()
		if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d %q", entry.Name(), answer.Code, answer.Header().Get("Content-Type"))
		}
		for _, bad := range []string{"innerHTML", "insertAdjacentHTML", "document.write", "eval(", "https://", "style=\"", " onclick=\"", "<style", "javascript:"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %s", entry.Name(), bad)
			}
		}
		again := r.ask("/static/"+entry.Name(), header("If-None-Match", answer.Header().Get("ETag")))
		if again.Code != http.StatusNotModified {
			t.Errorf("%s again: %d", entry.Name(), again.Code)
		}
	}
	for _, path := range []string{"/", "/problems", "/t/", "/t/pods", "/o/pods/default/web-1"} {
		if answer := r.ask(path); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "<!doctype html>") {
			t.Errorf("%s: %d", path, answer.Code)
		}
	}
}

// Whatever way a Secret is looked at, its value is not there, even if the mirror
// has it.
func TestSecrets(t *testing.T) {
	const value = "hunter2hunter2"
	const encoded = "aHVudGVyMmh1bnRlcjI="
	objects := []runtime.Object{secret("mine", value)}
	kept := rigOptions{objects: objects}
	kept.mirror.ShowSecrets = true
	r := newRig(t, kept)
	for _, path := range []string{
		"/api/objects/secrets/default/mine", "/api/objects/secrets/default/mine?as=yaml", "/api/tables/secrets", "/api/tables/secrets?offset=0", "/metrics", "/api/problems",
	} {
		answer := r.ask(path)
		text := answer.Body.String()
		if answer.Code != http.StatusOK || strings.Contains(text, value) || strings.Contains(text, encoded) {
			t.Errorf("%s: %d %s", path, answer.Code, text)
		}
	}
	if text := r.ask("/api/objects/secrets/default/mine?as=yaml").Body.String(); !strings.Contains(text, "password: (hidden)") && !strings.Contains(text, `password: "(hidden)"`) || !strings.Contains(text, "note: mine") {
		t.Errorf("not what may be shown:\n%s", text)
	}
	stream := r.follow("/api/events?object=secrets/default/mine")
	if text := stream.event("object"); strings.Contains(text, value) || strings.Contains(text, encoded) {
		t.Errorf("the stream tells %s", text)
	}
	r.put(secret("mine", value+value))
	if text := stream.event("object"); strings.Contains(text, "aHVud") || strings.Contains(text, value) {
		t.Errorf("the stream tells %s", text)
	}
	for _, query := range []string{
		"q=.data.password=" + encoded, "q=.data", "q=!.data.password", "q=.data.password%20in%20(x)", "q=.stringData.x=y", "sort=data.password", "sort=-data.password",
		"q=.metadata.annotations['" + lastApplied + "']", "sort=metadata.annotations['" + lastApplied + "']", "q=.['data'].password", "q=.metadata['annotations'].x=y",
		"sort=['data'].password", "q=metadata.name%20in%20(a[),.data.password=x", "q=metadata.name=x[,.data.password=y]", "sort=metadata['annotations'].x",
	} {
		for _, way := range []string{"", "&offset=0"} {
			if answer := r.ask("/api/tables/secrets?" + query + way); answer.Code != http.StatusBadRequest {
				t.Errorf("%s: %d %s", query, answer.Code, answer.Body)
			}
		}
	}
	if found := get[rowsAnswer](r, "/api/tables/secrets?q=metadata.name=mine+.type=Opaque&sort=-metadata.creationTimestamp"); len(found.Rows) != 1 {
		t.Errorf("by its name: %+v", found.Rows)
	}

	kept.web.ShowSecrets = true
	if text := newRig(t, kept).ask("/api/objects/secrets/default/mine?as=yaml").Body.String(); !strings.Contains(text, encoded) {
		t.Errorf("not shown though asked for:\n%s", text)
	}
	if text := newRig(t, rigOptions{objects: objects, web: Options{ShowSecrets: true}}).ask("/api/objects/secrets/default/mine").Body.String(); strings.Contains(text, encoded) || strings.Contains(text, value) {
		t.Errorf("the mirror kept it:\n%s", text)
	}
}
