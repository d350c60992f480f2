package web

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// browser is a real one, on one page.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	messages []string
}

// chromium is one process for all tests, because each start of it takes seconds.
var chromium struct {
	once sync.Once
	ctx  context.Context // nil if there is no such program
	end  func()
	err  error
}

// startChromium starts it. The first page stays empty.
func startChromium() {
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.WindowSize(1280, 800))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // its sandbox refuses to work for root
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	chromium.ctx, chromium.err = ctx, chromedp.Do(ctx)
	chromium.end = func() {
		_ = chromedp.Cancel(ctx)
		cancel()
		end()
	}
}

// newBrowser opens a page with cookies and a storage of its own, as a private window has.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	chromium.once.Do(startChromium)
	if chromium.ctx == nil {
		t.Skip("NOT TESTED IN A BROWSER: there is no chromium, chromium-browser or google-chrome here; on Debian, apt-get install chromium")
	}
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	ctx, cancel := context.WithTimeout(chromium.ctx, 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	messages := chromedp.Console(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.messages = append(b.messages, m.String())
			b.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		reading.Wait()
	})
	return b
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) open(address string) { b.t.Helper(); b.do(chromedp.Navigate(address)) }

// press types keys as a keyboard does: a key that the page handles itself types nothing.
// chromedp's own way sends the letter even then.
func (b *browser) press(keys string) {
	b.t.Helper()
	for _, r := range keys {
		events := kb.Encode(r)
		down, up := *events[0], *events[len(events)-1]
		down.Text = events[len(events)/2].Text
		if r == []rune(kb.Enter)[0] {
			down.Text = "\r"
		}
		for _, event := range []input.DispatchKeyEventParams{down, up} {
			if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, event); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

// sees waits until an expression in the page is true.
func (b *browser) sees(what, expression string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(15*time.Second)))
	if err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("not seen: %s: %v\nconsole: %q\nthe page says:\n%s", what, err, b.console(), text)
	}
}

// text waits until a part of the page says something.
func (b *browser) text(selector, want string) {
	b.t.Helper()
	b.sees(fmt.Sprintf("%q in %s", want, selector), fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.checkVisibility() && e.innerText.includes(%q))", selector, want))
}

func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

func (b *browser) console() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.messages...)
}

// serveOn serves a site on an address until stop is called.
func (r *rig) serveOn(address string, opts Options) (url string, stop func()) {
	r.t.Helper()
	opts.Address, opts.Logger = address, r.site.options.Logger
	opts.Anonymous = opts.Token == "" && opts.TokenFile == ""
	server, err := Listen(r.mirror, opts)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
	})
	r.t.Cleanup(stop)
	return server.URL(), stop
}

func manyPods(n int) []runtime.Object {
	var objects []runtime.Object
	for i := range n {
		objects = append(objects, pod("default", fmt.Sprintf("web-%04d", i)))
	}
	return objects
}

func TestBrowser(t *testing.T) {
	b := newBrowser(t)
	r := newRig(t, rigOptions{objects: append(manyPods(3000), replicaSet("default", "web"))})
	table, _ := r.mirror.Table("replicasets.apps")
	set, _ := table.Store().Get("default/web")
	r.put(pod("default", "web-0007", ownedBy("ReplicaSet", "web", set.GetUID())))
	address, stop := r.serveOn("127.0.0.1:0", Options{Name: "here"})

	b.open(address)
	b.text("#link", "live")
	b.text("#cluster", "here")
	b.text(".tables tr", "pods")
	b.text(".tables tr", "3,000")
	b.text(".tables .state", "following")
	for _, title := range []string{"Events per second", "Lag of the copy", "Time since last contact", "Memory of the objects"} {
		b.sees("the chart "+title, fmt.Sprintf("document.querySelector('.chart[aria-label^=%q] .stroke[d]') !== null", title))
	}

	// Search as one types, by keys alone.
	b.press("/")
	b.sees("the search has the focus", "document.activeElement.id === 'search'")
	b.press("0007")
	b.text("#found", "1 of 3,000")
	b.text(".row", "web-0007")
	b.press(" status.phase=Failed")
	b.text(".empty", "Nothing matches")
	r.put(pod("default", "web-0007", phase(corev1.PodFailed), ownedBy("ReplicaSet", "web", set.GetUID())))
	b.text(".row", "Failed")
	if got := eval[string](b, "new URLSearchParams(location.search).get('q')"); got != "0007 status.phase=Failed" {
		t.Errorf("the address has %q", got)
	}
	b.press(" tier in (")
	b.text("#found.alarm", "closing )")

	// Thousands of rows; only the visible ones are in the document.
	b.open(address + "t/pods")
	b.text(".row", "web-0000")
	b.press("jjk")
	b.sees("the second row is chosen", "document.querySelector('[aria-selected=true]')?.innerText.includes('web-0001')")
	b.press("G")
	b.text(".row[aria-selected=true]", "web-2999")
	if n := eval[int](b, "document.querySelectorAll('.row').length"); n > 100 {
		t.Errorf("%d rows exist", n)
	}
	b.do(chromedp.Click(chromedp.CSS(`[data-path="metadata.name"] button`)))
	b.sees("it is sorted", `document.querySelector('[data-path="metadata.name"]').getAttribute('aria-sort') === 'ascending'`)
	b.do(chromedp.Click(chromedp.CSS(`[data-path="metadata.name"] button`)))
	b.sees("the last is the first", "document.querySelector('[aria-rowindex=\"2\"]')?.innerText.includes('web-2999')")
	r.put(pod("default", "web-9999"))
	b.sees("a new object comes in by itself", "document.querySelector('[aria-rowindex=\"2\"]')?.innerText.includes('web-9999')")

	// An object, its changes, its owner.
	b.open(address + "t/pods?q=web-0007")
	b.text(".row", "web-0007")
	b.press(kb.Enter)
	b.text(".object h1", "web-0007")
	b.text(".yaml", "image: app:1")
	b.text(".changes ~ *, .object .empty", "None since")
	r.put(pod("default", "web-0007", ownedBy("ReplicaSet", "web", set.GetUID()), func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:2" }))
	b.text(".changes .path", "spec.containers[main].image")
	b.text(".changes del", "app:1")
	b.text(".changes ins", "app:2")
	b.text(".yaml .line.lit", "image: app:2")
	b.text(".relations", "ReplicaSet")
	b.do(chromedp.Click(chromedp.CSS(".relations a")))
	b.text(".object h1", "replicasets.apps")
	b.text(".relations", "web-0007")
	b.press(kb.Escape)
	b.text(".object h1", "web-0007")
	b.press(kb.Escape)
	b.text("#found", "1 of")
	b.open(address + "o/pods/default/web-0007")
	b.text(".yaml", "image: app:2")
	r.remove(pod("default", "web-0007"))
	b.text(".notice", "Deleted")

	b.open(address + "t/nonsense")
	b.text("main", "nonsense is not mirrored")
	b.text("#link", "live")

	// The server goes away, and comes back.
	for _, message := range b.console() {
		if !strings.Contains(message, "status of 400") { // of the query above
			t.Errorf("the console says %q", message)
		}
	}
	b.open(address)
	b.text("#link", "live")
	stop()
	b.text("#lost", "does not answer since")
	b.text("#link", "lost")
	r.put(pod("default", "late"))
	host := strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/")
	r.serveOn(host, Options{Name: "here again"})
	b.text("#cluster", "here again")
	b.sees("the alarm is over", "document.getElementById('lost').hidden")
}

func TestBrowserSignIn(t *testing.T) {
	b := newBrowser(t)
	r := newRig(t, rigOptions{objects: manyPods(1)})
	address, _ := r.serveOn("127.0.0.1:0", Options{Token: testToken})
	b.open(address + "t/pods")
	b.text("main", "This server wants a token")
	b.press("wrong" + kb.Enter)
	b.text("[role=alert]", "That is not the token")
	b.press(testToken + kb.Enter)
	b.text(".row", "web-0000")
	b.text("#link", "live")

	// Another browser is let in by a link, which leaves no trace of the token.
	another := newBrowser(t)
	another.open(address + "t/pods#token=" + testToken)
	another.text(".row", "web-0000")
	if at := eval[string](another, "location.href"); strings.Contains(at, testToken) {
		t.Errorf("the address is %s", at)
	}
	if kept := eval[string](another, "document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)"); strings.Contains(kept, testToken) || !strings.Contains(kept, "tarn-session") {
		t.Errorf("the browser keeps %s", kept)
	}

	// Signing out ends one session, or all of them; the token stays good.
	another.open(address + "o/pods/default/web-0000")
	another.text(".yaml", "image: app:1")
	another.do(chromedp.Click(chromedp.CSS("#signout")))
	another.text("main", "This server wants a token")
	another.sees("nothing is kept", "localStorage.length === 0")
	another.open(address + "t/pods")
	another.text("main", "This server wants a token")
	b.text("#link", "live")
	another.press(testToken + kb.Enter)
	another.text(".row", "web-0000")
	another.press("?")
	another.do(chromedp.Click(chromedp.CSS("#signout-all")))
	another.text("main", "This server wants a token")
	b.text("main", "This server wants a token")
	b.sees("no alarm", "document.getElementById('lost').hidden")
}

// The printed link signs in, and a session expires on every view of the page.
func TestBrowserSessionEnds(t *testing.T) {
	b := newBrowser(t)
	r := newRig(t, rigOptions{objects: manyPods(1)})
	server, err := Listen(r.mirror, Options{Address: "127.0.0.1:0", Logger: r.site.options.Logger})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	defer func() { cancel(); <-served }()
	if link := server.SignInURL(); !strings.HasPrefix(link, server.URL()+"#token=") {
		t.Fatalf("the link is %s", link)
	}
	b.open(server.SignInURL())
	b.text(".tables tr", "pods")
	b.text("#link", "live")
	b.open(server.URL() + "t/pods") // the session is remembered
	b.text(".row", "web-0000")

	// The whole of an object, in a tab of its own.
	b.open(server.URL() + "o/pods/default/web-0000")
	b.text(".yaml", "image: app:1")
	eval[bool](b, `window.opened = {}, window.open = () => window.opened, window.make = URL.createObjectURL, URL.createObjectURL = blob => { window.blob = blob; return window.make(blob) }, true`)
	b.do(chromedp.Click(chromedp.CSS("#raw")))
	b.sees("the tab is given an address", "String(window.opened.location).startsWith('blob:')")
	if text := eval[string](b, "window.blob.text()"); text != r.ask("/api/objects/pods/default/web-0000?as=yaml").Body.String() {
		t.Errorf("the tab shows %s", text)
	}

	sessions := server.Site().guard.sessions
	sessions.mu.Lock()
	sessions.now = func() time.Time { return time.Now().Add(sessions.life) }
	sessions.mu.Unlock()
	b.text("main", "This server wants a token")
	b.sees("nothing is kept", "localStorage.length === 0")
}

func TestBrowserThemes(t *testing.T) {
	b := newBrowser(t)
	r := newRig(t, rigOptions{})
	address, _ := r.serveOn("127.0.0.1:0", Options{})
	ground := func() string { return eval[string](b, "getComputedStyle(document.body).backgroundColor") }
	b.open(address)
	b.text("#link", "live")
	seen := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		if err != nil {
			t.Fatal(err)
		}
		seen[scheme] = ground()
	}
	if seen["light"] == seen["dark"] {
		t.Errorf("both are %s", seen["dark"])
	}
	b.press("t")
	if got := ground(); got != seen["light"] {
		t.Errorf("after t: %s", got)
	}
	b.open(address)
	b.text("#link", "live")
	if got := ground(); got != seen["light"] {
		t.Errorf("the choice is forgotten: %s", got)
	}
	// On a narrow screen nothing sticks out.
	b.do(chromedp.EmulateViewport(420, 800))
	for _, path := range []string{"", "t/pods", "problems"} {
		b.open(address + path)
		b.text("#link, main", "")
		b.sees(path+" fits", "document.documentElement.scrollWidth <= 420")
	}
}
