package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// When the server is back with another token, the page asks for the token, and does
// not show the server as down.
func TestBrowserAsksForAnotherToken(t *testing.T) {
	b := newBrowser(t)
	r := newRig(t, rigOptions{objects: manyPods(1)})
	address, stop := r.serveOn("127.0.0.1:0", Options{Token: testToken})
	b.open(address + "t/pods#token=" + testToken)
	b.text("#link", "live")
	stop()
	b.text("#lost", "does not answer since")
	host := strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/")
	r.serveOn(host, Options{Token: "another" + testToken})
	b.text("main", "This server wants a token")
	b.sees("no alarm", "document.getElementById('lost').hidden")

	// Coming back to the tab opens no stream, which would be refused.
	eval[bool](b, `window.opened = 0, window.asked = window.fetch, window.fetch = (path, options) => { if (path.startsWith('/api/events')) window.opened++; return window.asked(path, options) }, true`)
	eval[bool](b, `document.dispatchEvent(new Event('visibilitychange'))`)
	if n := eval[int](b, "window.opened"); n != 0 {
		t.Errorf("%d streams were opened", n)
	}
	b.press("another" + testToken + kb.Enter)
	b.text(".row", "web-0000")
	b.text("#link", "live")
}

// What is copied is the whole object, also if the page shows only its beginning.
func TestBrowserCopiesAll(t *testing.T) {
	b := newBrowser(t)
	long := pod("default", "long", func(p *corev1.Pod) {
		p.Annotations = map[string]string{}
		for i := range shownOfAnObject.Lines + 100 {
			p.Annotations[fmt.Sprintf("note-%05d", i)] = "x"
		}
	})
	r := newRig(t, rigOptions{})
	r.put(long)
	address, _ := r.serveOn("127.0.0.1:0", Options{})
	b.open(address + "o/pods/default/long")
	b.text(".more", "more lines")
	eval[bool](b, `navigator.clipboard.writeText = async text => { window.copied = text }, true`)
	b.press("y")
	b.sees("it is copied", "window.copied !== undefined")
	if want, got := r.ask("/api/objects/pods/default/long?as=yaml").Body.String(), eval[string](b, "window.copied"); got != want {
		t.Errorf("%d bytes were copied, of %d", len(got), len(want))
	}
}

// A hidden tab has no stream. When it is visible again, it shows what it missed, and
// shows nothing twice.
func TestBrowserShowsWhatItMissed(t *testing.T) {
	b := newBrowser(t)
	r := newRig(t, rigOptions{objects: manyPods(1)})
	address, _ := r.serveOn("127.0.0.1:0", Options{})
	hide := func(hidden bool) {
		eval[bool](b, fmt.Sprintf(`Object.defineProperty(document, 'hidden', { value: %v, configurable: true }), document.dispatchEvent(new Event('visibilitychange'))`, hidden))
	}
	b.open(address + "o/pods/default/web-0000")
	b.text(".yaml", "image: app:1")
	hide(true)
	r.put(pod("default", "web-0000", phase(corev1.PodFailed), func(p *corev1.Pod) { p.Spec.Containers[0].Image, p.Labels = "app:2", nil }))
	hide(false)
	b.text(".yaml .line.lit", "image: app:2")
	b.text(".changes .change .path", "spec.containers[main].image")
	b.text(".changes .change ins", "Failed")
	b.text(".changes .remove .path", "metadata.labels.app")
	if n := eval[int](b, "document.querySelectorAll('.changes .edit').length"); n != 4 { // the generation too
		t.Errorf("%d edits are told: %s", n, eval[string](b, "document.querySelector('.changes').innerText"))
	}
	hide(true)
	hide(false)
	b.text("#link", "live")
	r.remove(pod("default", "web-0000"))
	b.text(".notice", "Deleted")
	for range 2 {
		hide(true)
		hide(false)
	}
	r.put(pod("default", "web-0000"))
	b.sees("it is back", "document.querySelector('.notice').hidden")
	if n := eval[int](b, "[...document.querySelectorAll('.changes .path')].filter(e => e.innerText === 'the object').length"); n != 1 {
		t.Errorf("it is told %d times that it was deleted", n)
	}
	b.text(".changes .add .path", "another object of the same name")
}

// Keys that are typed faster than answers arrive are about what was searched for.
func TestBrowserTypesAhead(t *testing.T) {
	b := newBrowser(t)
	r := newRig(t, rigOptions{objects: []runtime.Object{pod("default", "api-1"), pod("default", "web-1")}})
	address, _ := r.serveOn("127.0.0.1:0", Options{})
	b.open(address + "t/pods")
	b.text(".row", "api-1")
	b.press("/web" + kb.Enter + kb.Enter)
	b.text(".object h1", "web-1")
	b.press(kb.Escape)
	b.text("#found", "1 of 2")

	// Nothing is opened later if there was nothing to open.
	b.press("/" + kb.End + "x" + kb.Enter + kb.Enter)
	b.text(".empty", "Nothing matches.")
	b.press("/" + kb.Backspace + kb.Enter)
	b.text(".row", "web-1")
	b.sees("it is still the table", "location.pathname.endsWith('/t/pods')")
}
