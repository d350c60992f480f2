package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/sqlite"
)

// statement makes a request into one that asks SQL.
func statement(sql string) func(*http.Request) {
	return func(r *http.Request) {
		r.Method = http.MethodPost
		r.Body = io.NopCloser(strings.NewReader(sql))
		r.Header.Set("Content-Type", "application/sql")
	}
}

// durable is a rig whose mirror is on disk, with all of it.
func durable(t *testing.T, opts rigOptions) *rig {
	t.Helper()
	if opts.disk == nil {
		opts.disk = &mirror.Disk{}
	}
	r := newRig(t, opts)
	if err := r.mirror.DB().Flush(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSQL(t *testing.T) {
	r := durable(t, rigOptions{objects: []runtime.Object{pod("default", "web-1"), pod("default", "web-2", phase(corev1.PodPending)), secret("s", "topsecret")}})
	for _, c := range []struct {
		path, sql string
		code      int
		want      string
	}{
		{"/api/sql", "SELECT name, phase FROM pods ORDER BY name", 200, `"columns":["name","phase"],"rows":[["web-1","Running"],["web-2","Pending"]],"cut":false`},
		{"/api/sql?format=csv", "SELECT name, NULL AS n FROM pods ORDER BY name", 200, "name,n\nweb-1,\nweb-2,\n"},
		{"/api/sql?format=json", "SELECT count(*) AS n FROM pods", 200, "[\n{\"n\": 2}\n]\n"},
		{"/api/sql?format=table", "SELECT name FROM pods WHERE phase = 'Pending'", 200, "NAME\nweb-2\n"},
		{"/api/sql?rows=1", "SELECT name FROM pods ORDER BY name", 200, `"rows":[["web-1"]],"cut":true`},
		{"/api/sql", "SELECT 9007199254740993 AS n, 1e999 AS i, x'00ff' AS b", 200, `"rows":[["9007199254740993","+Inf","AP8="]]`},
		{"/api/sql", "SELECT * FROM podz", 400, "did you mean pods?"},
		{"/api/sql", "SELEC", 400, "syntax error"},
		{"/api/sql", "", 400, "no statement"},
		{"/api/sql", "DELETE FROM tarn_collections", 403, "only reading is allowed"},
		{"/api/sql", "ATTACH '/etc/passwd' AS x", 403, "only reading is allowed"},
		{"/api/sql", "PRAGMA query_only=0", 403, "only reading is allowed"},
		{"/api/sql?timeout=10ms", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT max(i) FROM n", 400, "stopped after 10ms"},
		{"/api/sql?rows=0", "SELECT 1", 400, "rows is a number"},
		{"/api/sql?timeout=x", "SELECT 1", 400, "timeout is a time"},
		{"/api/sql?format=xml", "SELECT 1", 400, "format is"},
		{"/api/sql", "SELECT '" + strings.Repeat("x", 2<<20) + "'", 413, "too long"},
		{"/api/sql", "SELECT * FROM secrets", 400, "no table secrets"},
	} {
		answer := r.ask(c.path, statement(c.sql))
		if answer.Code != c.code || !strings.Contains(answer.Body.String(), c.want) {
			t.Errorf("%s %.60s: %d %s, want %d %s", c.path, c.sql, answer.Code, answer.Body, c.code, c.want)
		}
	}
	if got := get[map[string]any](r, "/api/sql"); !strings.Contains(strings.Join(texts(got["tables"]), " "), "api_resources deployments_apps nodes pods replicasets_apps") {
		t.Errorf("the tables are %v", got)
	}
	if got := get[map[string]any](r, "/api/sql?table=pods"); !strings.HasPrefix(strings.Join(texts(got["columns"]), " "), "id key labels namespace name") {
		t.Errorf("the columns are %v", got)
	}
	if answer := r.ask("/api/sql?table=pods%20x"); answer.Code != http.StatusNotFound {
		t.Errorf("a table that is none: %d %s", answer.Code, answer.Body)
	}
	if !get[overview](r, "/api/tables").SQL {
		t.Error("the page is not told that there is SQL")
	}
}

// What is not on disk yet seems to be empty, and is said to be so.
func TestSQLOfWhatIsNotThereYet(t *testing.T) {
	r := newRig(t, rigOptions{disk: &mirror.Disk{}, missing: "nodes", objects: []runtime.Object{pod("default", "web-1")}})
	const question = "SELECT count(*) AS n FROM nodes, api_resources WHERE 'pods' <> ''"
	answer := r.ask("/api/sql", statement(question))
	if body := answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(body, `"rows":[[0]],"cut":false,"unwritten":["nodes"]`) {
		t.Errorf("%d %s, want no rows, and that nodes are not written", answer.Code, body)
	}
	b := newBrowser(t)
	address, _ := r.serveOn("127.0.0.1:0", Options{})
	b.open(address + "/sql?" + url.Values{"q": {question}}.Encode())
	b.do(chromedp.Click(chromedp.CSS("#ask")))
	b.text("#sql-said", "the first state of nodes is not all on disk yet")
	answer = r.ask("/api/sql?format=csv", statement(question))
	if got := answer.Header().Values("Tarn-Unwritten"); !slices.Equal(got, []string{"nodes"}) {
		t.Errorf("the header names %q, want nodes", got)
	}
}

// names is a table of names.
type names struct{}

func (names) Append(buf []byte, name string) ([]byte, error)  { return append(buf, name...), nil }
func (names) Decode(raw []byte) (string, error)               { return string(raw), nil }
func (names) Schema() string                                  { return "names" }
func (names) Table() sqlite.Table                             { return sqlite.Table{} }
func (names) Row(name string, raw []byte) (sqlite.Row, error) { return sqlite.Row{}, nil }

// An answer says that a table it reads lacks an object.
func TestSQLOfAnIncompleteCopy(t *testing.T) {
	r := durable(t, rigOptions{})
	torn, err := sqlite.NewStore(r.mirror.DB(), sqlite.Collection{Name: "torn"}, names{})
	if err != nil {
		t.Fatal(err)
	}
	if err := torn.Apply([]tarn.Change[string]{{Type: tarn.Add, Key: "a", Object: "a"}}, tarn.Position{Version: "1"}); err != nil {
		t.Fatal(err)
	}
	answer := r.ask("/api/sql", statement("SELECT count(*) AS n FROM torn"))
	if body := answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(body, `"rows":[[1]],"cut":false,"incomplete":["torn"]`) {
		t.Errorf("%d %s, want that torn is incomplete", answer.Code, body)
	}
	answer = r.ask("/api/sql?format=csv", statement("SELECT count(*) AS n FROM torn"))
	if got := answer.Header().Values("Tarn-Incomplete"); !slices.Equal(got, []string{"torn"}) {
		t.Errorf("the header names %q, want torn", got)
	}
}

func texts(list any) (all []string) {
	values, _ := list.([]any)
	for _, v := range values {
		all = append(all, v.(string))
	}
	return all
}

// A statement comes from our page, or from a program that says what it is.
func TestSQLIsProtected(t *testing.T) {
	r := durable(t, rigOptions{web: Options{Token: testToken}})
	signedIn := bearer(r.openSession())
	ask := func(change ...func(*http.Request)) *httptest.ResponseRecorder {
		return r.ask("/api/sql", append([]func(*http.Request){statement("SELECT 1")}, change...)...)
	}
	for name, c := range map[string]struct {
		answer *httptest.ResponseRecorder
		want   int
	}{
		"signed in":             {ask(signedIn, header("Sec-Fetch-Site", "same-origin")), 200},
		"with the token":        {ask(header("Authorization", "Bearer "+testToken)), 200},
		"without":               {ask(), 401},
		"another site":          {ask(signedIn, header("Sec-Fetch-Site", "cross-site")), 403},
		"another origin":        {ask(signedIn, header("Origin", "http://evil.example.com")), 403},
		"a rebound name":        {ask(signedIn, host("evil.example.com")), 403},
		"a form":                {ask(signedIn, header("Content-Type", "text/plain")), 415},
		"no type":               {ask(signedIn, header("Content-Type", "")), 415},
		"a post to other paths": {r.ask("/api/tables", statement("SELECT 1"), signedIn), 405},
	} {
		if c.answer.Code != c.want {
			t.Errorf("%s: %d %s, want %d", name, c.answer.Code, c.answer.Body, c.want)
		}
	}
}

// Where there is nothing to ask, or something not to be shown, that is said.
func TestNoSQL(t *testing.T) {
	objects := []runtime.Object{secret("s", "topsecret")}
	for name, c := range map[string]struct {
		opts rigOptions
		code int
		want string
	}{
		"no disk":          {rigOptions{}, 404, "kept on disk"},
		"encrypted":        {rigOptions{disk: &mirror.Disk{}, key: []byte(strings.Repeat("k", 32))}, 404, "encrypted"},
		"secrets":          {rigOptions{disk: &mirror.Disk{Secrets: true}, mirror: mirror.Options{ShowSecrets: true}}, 403, "not to be shown"},
		"hidden secrets":   {rigOptions{disk: &mirror.Disk{Secrets: true}}, 200, "(hidden)"},
		"secrets for show": {rigOptions{disk: &mirror.Disk{Secrets: true}, mirror: mirror.Options{ShowSecrets: true}, web: Options{ShowSecrets: true}}, 200, "dG9wc2VjcmV0"},
	} {
		c.opts.objects = objects
		r := newRig(t, c.opts)
		if db := r.mirror.DB(); db != nil {
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		answer := r.ask("/api/sql", statement("SELECT object ->> '$.data.password' AS p FROM secrets"))
		if answer.Code != c.code || !strings.Contains(answer.Body.String(), c.want) {
			t.Errorf("%s: %d %s, want %d %s", name, answer.Code, answer.Body, c.code, c.want)
		}
		if told := get[overview](r, "/api/tables").SQL; told != (c.code == 200) {
			t.Errorf("%s: the page is told %v", name, told)
		}
	}
}

// The console is used by the keyboard alone, shows what was found and what was
// wrong, and gives files.
func TestBrowserConsole(t *testing.T) {
	b := newBrowser(t)
	r := durable(t, rigOptions{objects: append(manyPods(1500), pod("default", "db-1", phase(corev1.PodPending)))})
	address, _ := r.serveOn("127.0.0.1:0", Options{Name: "here"})
	b.open(address)
	b.text("#sql-link", "SQL")
	b.press("4")
	b.text(".sql-tables", "deployments_apps")
	b.sees("the cursor is in the statement", "document.activeElement.id === 'statement'")
	b.press("SELECT name, phase, priority, 12 AS n FROM pods WHERE phase = 'Pending'")
	ctrlEnter := func() {
		events := kb.Encode([]rune(kb.Enter)[0])
		for _, event := range []input.DispatchKeyEventParams{*events[0], *events[len(events)-1]} {
			event.Modifiers = 2 // Ctrl
			if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, event); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctrlEnter()
	b.text(".result td", "db-1")
	b.text(".result td.null", "NULL")
	b.text("#sql-said", "1 row in")
	b.sees("the statement is in the address", "new URLSearchParams(location.search).get('q').startsWith('SELECT name')")

	// What is handed to the browser to be saved is the answer as a file.
	eval[bool](b, `URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text }); return '#' }, HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download }, true`)
	for format, want := range map[string]string{"csv": "name,phase,priority,n\ndb-1,Pending,,12\n", "json": "[\n{\"name\": \"db-1\", \"phase\": \"Pending\", \"priority\": null, \"n\": 12}\n]\n"} {
		eval[bool](b, `document.getElementById('`+format+`').click(), true`)
		b.sees("a file is saved", "window.savedAs === 'tarn."+format+"' && window.saved !== undefined")
		if got := eval[string](b, "window.saved"); got != want {
			t.Errorf("as %s it is\n%s, want\n%s", format, got, want)
		}
		eval[bool](b, "window.saved = undefined, true")
	}

	set := func(sql string) {
		eval[bool](b, `document.getElementById('statement').value = `+"`"+sql+"`"+`, document.getElementById('statement').focus(), true`)
		ctrlEnter()
	}
	set("SELECT name FROM podz")
	b.text("#sql-said.alarm", "did you mean pods?")
	b.sees("nothing is left of what was found", "document.querySelector('.result td') === null && document.getElementById('csv').disabled")
	set("SELECT name, namespace, node, 3.5 AS cost FROM pods ORDER BY name DESC")
	b.text("#sql-said", "1,000 rows in")
	b.text("#sql-said", "there are more")
	eval[bool](b, `document.querySelector('.sql-tables button:nth-of-type(4)').click(), true`)
	b.text(".sql-tables ol", "owner_kind")
	colours := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		if err != nil {
			t.Fatal(err)
		}
		colours[eval[string](b, "getComputedStyle(document.querySelector('.result th')).backgroundColor")] = true
		b.picture("console-" + scheme)
	}
	if len(colours) != 2 {
		t.Errorf("dark and light look the same: %v", colours)
	}
	b.do(chromedp.EmulateViewport(420, 800))
	b.sees("it fits a narrow screen", "document.documentElement.scrollWidth <= 420")
	b.press("\x1b") // out of the statement
	b.press("1")
	b.text(".tables tr", "pods")
	for _, m := range b.console() {
		if !strings.Contains(m, "400") {
			t.Errorf("the browser complains: %s", m)
		}
	}
}

// picture saves what is to be seen where TARN_PICTURES says, for people.
func (b *browser) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("TARN_PICTURES")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
