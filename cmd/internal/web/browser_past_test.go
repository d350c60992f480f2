package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// pastRig is a mirror with a history of web-1: Pending, Running, a gap, Failed.
func pastRig(t *testing.T) (r *rig, gap gapAnswer) {
	t.Helper()
	down := &outage{}
	r = newRig(t, rigOptions{
		disk: &mirror.Disk{}, history: keepAll, outage: down,
		objects: []runtime.Object{pod("default", "web-1", phase(corev1.PodPending)), pod("default", "api-1")},
	})
	r.written()
	r.put(pod("default", "web-1"))
	r.written()
	down.begin()
	r.removeUnheard(pod("default", "api-1"))
	if err := r.server.Put(pod("default", "web-1", phase(corev1.PodFailed)), pod("default", "late-1")); err != nil {
		t.Fatal(err)
	}
	r.server.Compact()
	down.end()
	table, _ := r.mirror.Table("pods")
	r.catchUp(table)
	gaps := get[tableHistory](r, "/api/history/pods").Gaps
	if len(gaps) != 1 {
		t.Fatalf("the gaps are %+v", gaps)
	}
	return r, gaps[0]
}

// written waits until what the mirror has is on disk.
func (r *rig) written() {
	r.t.Helper()
	if err := r.mirror.DB().Flush(); err != nil {
		r.t.Fatal(err)
	}
}

// removeUnheard deletes objects on the server alone: the mirror does not learn of it.
func (r *rig) removeUnheard(objects ...runtime.Object) {
	r.t.Helper()
	if err := r.server.Delete(objects...); err != nil {
		r.t.Fatal(err)
	}
}

func middle(t *testing.T, g gapAnswer) time.Time {
	t.Helper()
	since, err := time.Parse(timeFormat, g.Since)
	if err != nil {
		t.Fatal(err)
	}
	until, err := time.Parse(timeFormat, g.Until)
	if err != nil || until.Sub(since) < 3*time.Millisecond {
		t.Fatalf("the gap is %+v: %v", g, err)
	}
	return since.Add(until.Sub(since) / 2)
}

// The slider shows a table as of a moment, says so, and the table stays as it is then.
func TestBrowserTableOfThePast(t *testing.T) {
	b := newBrowser(t)
	r, gap := pastRig(t)
	address, _ := r.serveOn("127.0.0.1:0", Options{})
	b.open(address + "t/pods")
	b.text(".row", "late-1")
	b.text(".moment output", "now")
	b.sees("the gap is drawn", "document.querySelector('.moment .gap')?.getBoundingClientRect().width > 2")
	b.sees("nothing is said of the past", "document.querySelector('.notice').hidden")

	// By keys: to the beginning, and back to now.
	b.press("m")
	b.sees("the slider has the focus", "document.activeElement.id === 'moment'")
	b.press(kb.Home)
	b.text(".notice.past", "As heard at ")
	b.text(".notice.past", "This table is not updated")
	b.text(".row", "api-1")
	b.text(".row", "Pending")
	b.sees("late-1 was not there", "![...document.querySelectorAll('.row:not([hidden])')].some(e => e.innerText.includes('late-1'))")
	b.text("#found", "2 objects")
	said := eval[string](b, "document.getElementById('moment').getAttribute('aria-valuetext')")
	if !strings.HasPrefix(said, "as heard at ") {
		t.Errorf("the slider says %q", said)
	}
	r.put(pod("default", "new-1"))
	b.sees("the sidebar is live", "document.querySelector('.sidebar [aria-current] .count').innerText === '3'")
	b.text("#found", "2 objects")
	if rows := eval[string](b, "document.querySelector('.rows').innerText"); strings.Contains(rows, "new-1") {
		t.Errorf("the past is updated: %s", rows)
	}
	b.press(kb.ArrowRight)
	b.sees("it moves on", fmt.Sprintf("document.getElementById('moment').getAttribute('aria-valuetext') !== %q || Number(document.getElementById('moment').value) > Number(document.getElementById('moment').min)", said))
	b.press(kb.End)
	b.text(".row", "new-1")
	b.sees("it is the present", "document.querySelector('.notice').hidden && !location.search.includes('at=')")

	// A moment is in the address; in a gap, the table says so.
	b.open(address + "t/pods?at=" + middle(t, gap).Format(time.RFC3339Nano))
	b.text(".notice.past", "may be missing: read anew")
	b.text(".row", "Running")
	b.text(".row", "api-1")
	b.press("/")
	b.press("web")
	b.text("#found", "1 found")
	b.press(kb.Enter)
	b.press(kb.Enter)
	b.text(".object h1", "web-1")
	b.text(".object .notice.past", "As heard at ")
	b.text(".yaml", "phase: Running")
	b.press(kb.Escape)
	b.text("#found", "1 found")

	// Other tables are shown as of the same moment, and the button leads back.
	b.press("]")
	b.text(".notice.past", "As heard at ")
	b.press("[")
	b.text(".row", "api-1")
	b.do(chromedp.Click(chromedp.CSS("#now")))
	b.text(".row", "late-1")

	// Where the past is not known nothing is shown, and there is a way back.
	b.open(address + "t/pods?at=2001-01-01T00:00:00Z")
	b.text("#found.alarm", "its history begins at")
	b.sees("no rows", "[...document.querySelectorAll('.row')].every(e => e.hidden)")
	b.open(address + "t/secrets?at=" + middle(t, gap).Format(time.RFC3339Nano))
	b.text("#found.alarm", "Secrets are not written to disk")
	b.do(chromedp.Click(chromedp.CSS("#now")))
	b.text("#found", "0 objects")
	b.sees("no slider", "!document.querySelector('.moment').checkVisibility()")
	b.do(chromedp.EmulateViewport(420, 800))
	for _, path := range []string{"t/pods", "o/pods/default/web-1"} {
		b.open(address + path)
		b.sees(path+" fits", "document.querySelector('.moment, .timeline')?.checkVisibility() && document.documentElement.scrollWidth <= 420")
	}
}

// The timeline has a mark for each state, and gaps where states may be missing.
func TestBrowserTimeline(t *testing.T) {
	b := newBrowser(t)
	r, _ := pastRig(t)
	address, _ := r.serveOn("127.0.0.1:0", Options{})
	b.open(address + "o/pods/default/web-1")
	b.text(".timeline .where", "3 states")
	b.sees("the gap is hatched", "getComputedStyle(document.querySelector('.timeline .gap')).backgroundImage.includes('repeating-linear-gradient')")
	b.sees("marks are in order", "(l => l.length === 3 && l[0] <= l[1] && l[1] < l[2])([...document.querySelectorAll('.timeline .mark')].map(e => e.getBoundingClientRect().left))")
	b.sees("the gap is between the marks", "(([, m, n], g) => m.left < g.right && g.left < n.right)([...document.querySelectorAll('.timeline .mark')].map(e => e.getBoundingClientRect()), document.querySelector('.timeline .gap').getBoundingClientRect())")
	b.text(".yaml", "phase: Failed")

	// By keys, from the newest to the oldest.
	b.press("m")
	b.sees("the timeline has the focus", "document.activeElement.matches('.timeline .track')")
	b.press(kb.ArrowLeft)
	b.text(".timeline .where", "3 of 3")
	b.text(".details .path", "status.phase")
	b.text(".details del", "Running")
	b.text(".details ins", "Failed")
	b.text(".details .gap-note", "may be missing: read anew")
	b.press(kb.ArrowLeft)
	b.text(".timeline .where", "2 of 3")
	b.text(".notice.past", "This state is not updated")
	b.text(".yaml", "phase: Running")
	b.text(".details ins", "Running")
	b.text(".object .facts", "Running")
	b.press(kb.ArrowLeft)
	b.text(".details", "The first state of this object")
	b.text(".yaml", "phase: Pending")
	b.sees("the state is chosen", "document.querySelector('.mark[aria-selected=true]').matches('.added') && document.querySelector('.track').getAttribute('aria-activedescendant') === document.querySelector('.mark[aria-selected=true]').id")

	// A change does not disturb it, and is on the axis.
	r.put(pod("default", "web-1", phase(corev1.PodSucceeded)))
	b.text(".timeline .where", "1 of 4")
	b.text(".changes ins", "Succeeded")
	b.text(".yaml", "phase: Pending")
	b.press(kb.Escape)
	b.text(".yaml", "phase: Succeeded")
	b.sees("it is the present", "document.querySelector('.notice').hidden && !location.search")

	// By the mouse; the state is in the address.
	b.do(chromedp.Click(chromedp.CSS(".timeline .gap + .mark")))
	b.text(".yaml", "phase: Failed")
	at := eval[string](b, "location.href")
	b.open(at)
	b.text(".notice.past", "As heard at ")
	b.text(".yaml", "phase: Failed")
	b.do(chromedp.Click(chromedp.CSS("#now")))
	b.text(".yaml", "phase: Succeeded")

	// What is gone still has its past.
	r.remove(pod("default", "web-1"))
	b.text(".notice", "Deleted")
	b.text(".timeline .where", "5 states")
	b.press("m" + kb.ArrowLeft)
	b.text(".notice.past", "Deleted, as heard at ")
	b.text(".details", "The object was deleted")
	b.open(address + "o/pods/default/web-1")
	b.text(".notice", "There is no such object")
	b.text(".timeline .where", "5 states")
	b.press("m" + kb.ArrowLeft + kb.ArrowLeft)
	b.text(".yaml", "phase: Succeeded")

	for _, message := range b.console() {
		t.Errorf("the console says %q", message)
	}
}

// Older states are asked for when they are wanted.
func TestBrowserLongTimeline(t *testing.T) {
	b := newBrowser(t)
	r := newRig(t, rigOptions{disk: &mirror.Disk{}, history: keepAll, objects: []runtime.Object{pod("default", "web-1", phase(corev1.PodPending))}})
	r.written()
	for i := range 120 {
		r.put(pod("default", "web-1", func(p *corev1.Pod) { p.Labels["round"] = fmt.Sprint(i) }))
	}
	address, _ := r.serveOn("127.0.0.1:0", Options{})
	b.open(address + "o/pods/default/web-1")
	b.text(".timeline .where", "100 newest states")
	b.do(chromedp.Click(chromedp.CSS(".timeline .older")))
	b.text(".timeline .where", "121 states")
	b.sees("these are all", "document.querySelector('.timeline .older').hidden")
	b.press("m" + kb.Home)
	b.text(".yaml", "phase: Pending")
	b.open(eval[string](b, "location.href"))
	b.text(".yaml", "phase: Pending")
	b.text(".timeline .where", "1 of 121")
	for _, message := range b.console() {
		t.Errorf("the console says %q", message)
	}
}
