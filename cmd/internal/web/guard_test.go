package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

const testToken = "0123456789abcdef"

func TestReadOnly(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PROPFIND"} {
		for _, path := range []string{"/", "/api/tables", "/api/session", "/healthz", "/metrics"} {
			if path == sessionPath && (method == "POST" || method == "DELETE") {
				continue
			}
			answer := r.ask(path, func(r *http.Request) { r.Method = method })
			if answer.Code != http.StatusMethodNotAllowed || !strings.HasPrefix(answer.Header().Get("Allow"), "GET, HEAD") {
				t.Errorf("%s %s: %d", method, path, answer.Code)
			}
		}
	}
	if answer := r.ask("/api/tables", func(r *http.Request) { r.Method = http.MethodHead }); answer.Code != http.StatusOK {
		t.Errorf("HEAD: %d", answer.Code)
	}
}

// A request with a foreign name that was bound to our address is refused.
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

// method and bearer change a request.
func method(name string) func(*http.Request) {
	return func(r *http.Request) { r.Method = name }
}

func bearer(text string) func(*http.Request) { return header("Authorization", "Bearer "+text) }

// openSession signs in.
func (r *rig) openSession() string {
	r.t.Helper()
	answer := r.ask("/api/session", method("POST"), bearer(testToken))
	var opened sessionAnswer
	if err := json.Unmarshal(answer.Body.Bytes(), &opened); answer.Code != http.StatusOK || err != nil || len(opened.Session) != 32 || opened.Session == testToken {
		r.t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	if len(answer.Result().Cookies()) != 0 {
		r.t.Error("there is a cookie, which other ports of this machine would get too")
	}
	return opened.Session
}

// A session stands for the token until it is over, is ended, or the token is another.
func TestSession(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string, at time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(file, []byte(text+"\n"), 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	write(testToken, time.Now())
	r := newRig(t, rigOptions{web: Options{TokenFile: file}})
	now := time.Now()
	r.site.guard.sessions.now = func() time.Time { return now }
	admitted := func(session string) bool {
		t.Helper()
		switch answer := r.ask("/api/tables", bearer(session)); answer.Code {
		case http.StatusOK:
			return true
		case http.StatusUnauthorized:
			return false
		default:
			t.Fatalf("%d %s", answer.Code, answer.Body)
			return false
		}
	}
	first, second := r.openSession(), r.openSession()
	if first == second || !admitted(first) || !admitted(second) || admitted(first+"x") || admitted("") {
		t.Error("sessions do not admit whom they should")
	}
	if who := get[sessionAnswer](r, "/api/session", bearer(first)); who.As != asSession || who.Expires != stamp(now.Add(12*time.Hour)) || who.Session != "" {
		t.Errorf("it is %+v", who)
	}
	if answer := r.ask("/api/session", method("POST"), bearer(first)); answer.Code != http.StatusForbidden {
		t.Errorf("a session opens another, and so never ends: %d", answer.Code)
	}
	for _, m := range []string{"POST", "DELETE", "GET"} {
		if answer := r.ask("/api/session", method(m)); answer.Code != http.StatusUnauthorized {
			t.Errorf("%s by nobody: %d", m, answer.Code)
		}
	}

	if r.ask("/api/session", method("DELETE"), bearer(first)); admitted(first) || !admitted(second) {
		t.Error("signing out ends one's own session, and no other")
	}
	third := r.openSession()
	if r.ask("/api/session?all=true", method("DELETE"), bearer(testToken)); admitted(second) || admitted(third) || !admitted(testToken) {
		t.Error("not all sessions have ended")
	}
	fourth := r.openSession()
	if r.site.EndSessions(); admitted(fourth) {
		t.Error("EndSessions does not")
	}

	fifth := r.openSession()
	now = now.Add(12*time.Hour - 1)
	if !admitted(fifth) {
		t.Error("a session ends early")
	}
	if now = now.Add(1); admitted(fifth) || len(r.site.guard.sessions.open) != 0 {
		t.Error("a session does not end by itself, or is kept")
	}

	// Another token ends the sessions of the one before. What cannot be a token is not
	// taken.
	sixth := r.openSession()
	again := func() { r.site.guard.token.file.looked = time.Time{} }
	write("short", time.Now().Add(time.Second))
	if again(); !admitted(sixth) || !admitted(testToken) || admitted("short") {
		t.Error("a token that can be guessed takes the place of a good one")
	}
	write("another"+testToken, time.Now().Add(2*time.Second))
	if again(); admitted(sixth) || admitted(testToken) || !admitted("another"+testToken) {
		t.Error("the token in the file is another, and the one before still admits")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if again(); !admitted("another" + testToken) {
		t.Error("without the file nobody is admitted")
	}
}

func TestSessionsAreBounded(t *testing.T) {
	s := newSessions(12 * time.Hour)
	now := time.Now()
	s.now = func() time.Time { return now }
	token := []byte("token")
	first, _ := s.begin(token)
	second := ""
	for i := range maxSessions {
		now = now.Add(time.Second)
		text, _ := s.begin(token)
		if i == 0 {
			second = text
		}
	}
	_, firstThere := s.find(first, token)
	if _, secondThere := s.find(second, token); firstThere || !secondThere || len(s.open) != maxSessions {
		t.Errorf("the first is there: %v, the second: %v, of %d", firstThere, secondThere, len(s.open))
	}
}

// A stream ends with the session that it was opened with.
func TestStreamEndsWithItsSession(t *testing.T) {
	r := newRig(t, rigOptions{web: Options{Token: testToken}})
	session := r.openSession()
	s := r.follow("/api/events", bearer(session))
	s.event("overview")
	r.ask("/api/session", method("DELETE"), bearer(session))
	for range s.events { // until the stream has ended
	}
}

func TestTokenOptions(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, test := range []struct {
		opts Options
		want string
	}{
		{Options{Token: "short"}, "16 or more"},
		{Options{Token: testToken, TokenFile: "x"}, "leave one out"},
		{Options{Token: testToken, Anonymous: true}, "leave one out"},
		{Options{TokenFile: filepath.Join(t.TempDir(), "none")}, "cannot be read"},
	} {
		if _, err := New(r.mirror, test.opts); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.opts, err, test.want)
		}
	}
	// Without any of them there is a token, and a link that has it.
	first, err := New(r.mirror, Options{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := New(r.mirror, Options{})
	if err != nil {
		t.Fatal(err)
	}
	token, ok := strings.CutPrefix(first.SignInPath(), "/#token=")
	if !ok || len(token) != 32 || first.SignInPath() == second.SignInPath() {
		t.Errorf("the links are %s and %s", first.SignInPath(), second.SignInPath())
	}
	r.site = first
	if r.ask("/api/tables").Code != http.StatusUnauthorized || r.ask("/api/tables", bearer(token)).Code != http.StatusOK {
		t.Error("the token in the link is not the one that is wanted")
	}
	if given, err := New(r.mirror, Options{Token: testToken}); err != nil || given.SignInPath() != "/" {
		t.Errorf("a token of one's own is shown: %v", err)
	}
}

func TestHeaders(t *testing.T) {
	r := newRig(t, rigOptions{web: Options{Profiles: true}, objects: []runtime.Object{pod("default", "web-1")}})
	for _, path := range []string{"/", "/static/app.js", "/api/tables", "/none", "/healthz", "/metrics", "/debug/pprof/", "/api/objects/pods/default/web-1?as=yaml", "/api/objects/pods/default/none", "/api/session"} {
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
		wantStored := "no-store"
		if path == "/" || strings.HasPrefix(path, "/static/") {
			wantStored = "no-cache" // there is nothing of the mirror in them
		}
		if got := h.Get("Cache-Control"); got != wantStored {
			t.Errorf("%s: Cache-Control is %q", path, got)
		}
		if strings.Contains(csp, "unsafe") || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: too much is allowed: %v", path, h)
		}
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

// Every view of a Secret lacks its value, even if the mirror
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
