package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/internal/render"
	"github.com/tarnproject/tarn/sqlite"
)

var keepAll = sqlite.History{Age: 1000 * time.Hour}

// inThePast runs a test with a clock of its own, and a mirror that keeps a history.
func inThePast(t *testing.T, opts rigOptions, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if opts.disk == nil {
			opts.disk = &mirror.Disk{}
		}
		if opts.history == (sqlite.History{}) {
			opts.history = keepAll
		}
		r := newRig(t, opts)
		time.Sleep(5 * time.Second) // the first state is on disk
		test(r)
	})
}

func asOf(path string, at time.Time) string {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return path + separator + "at=" + url.QueryEscape(at.Format(time.RFC3339Nano))
}

// story is a table of states in text: operation, and the paths that changed.
func story(states []pastState) (lines []string) {
	for _, s := range states {
		if s.Gap != nil {
			lines = append(lines, "gap: "+string(s.Gap.Cause))
			continue
		}
		line := s.Operation + " " + s.Status
		for _, e := range s.Edits {
			line += fmt.Sprintf(" %s=%s", e.Path, e.New)
		}
		lines = append(lines, line)
	}
	return lines
}

// A table as of a moment has the rows that the ordinary answer had then.
func TestRowsAsOf(t *testing.T) {
	inThePast(t, rigOptions{objects: []runtime.Object{pod("default", "web-1"), pod("default", "web-2", phase(corev1.PodPending)), pod("shop", "api-1")}}, func(r *rig) {
		type moment struct {
			at   time.Time
			rows map[string]rowsAnswer
		}
		queries := []string{"", "q=web", "q=status.phase=Running", "q=app=api", "sort=-metadata.name", "q=default&sort=status.phase", "limit=2"}
		var moments []moment
		note := func() {
			m := moment{at: time.Now(), rows: map[string]rowsAnswer{}}
			for _, q := range queries {
				m.rows[q] = get[rowsAnswer](r, "/api/tables/pods?offset=0&"+q)
			}
			moments = append(moments, m)
			time.Sleep(3 * time.Second)
		}
		note()
		r.put(pod("default", "web-2"))
		note()
		r.remove(pod("default", "web-1"))
		r.put(pod("shop", "db-1", phase(corev1.PodFailed)))
		note()
		r.put(pod("default", "web-1", phase(corev1.PodPending)))
		note()
		for i, m := range moments {
			for q, want := range m.rows {
				got := get[rowsAnswer](r, asOf("/api/tables/pods?offset=0&"+q, m.at))
				if diff := cmp.Diff(want.Rows, got.Rows); diff != "" || *got.Total != *want.Total || len(got.Columns) != len(want.Columns) {
					t.Errorf("moment %d, %s: %d of %d: want -, got +\n%s", i, q, *got.Total, *want.Total, diff)
				}
				if got.Past == nil || got.Past.At != stamp(m.at) || got.Past.Since == "" || len(got.Past.Gaps) != 0 {
					t.Errorf("moment %d: %+v", i, got.Past)
				}
			}
		}
		// How long ago it was is a moment too.
		ago := time.Since(moments[0].at)
		if got := get[rowsAnswer](r, "/api/tables/pods?at="+ago.String()); len(got.Rows) != 3 || got.Past.At != stamp(moments[0].at) {
			t.Errorf("%s ago there were %v at %s", ago, keys(got), got.Past.At)
		}
		// By token too, every object comes once.
		var followed []string
		for token := ""; ; {
			page := get[rowsAnswer](r, asOf("/api/tables/pods?limit=1&continue="+token, moments[1].at))
			followed = append(followed, keys(page)...)
			if token = page.Continue; token == "" {
				break
			}
		}
		if diff := cmp.Diff([]string{"default/web-1", "default/web-2", "shop/api-1"}, followed); diff != "" {
			t.Errorf("by token: want -, got +\n%s", diff)
		}
		// Words are searched in the rows that are already there.
		n := len(r.site.past.all)
		if got := keys(get[rowsAnswer](r, asOf("/api/tables/pods?q=app=web+-2", moments[0].at))); n == 0 || len(got) != 1 {
			t.Errorf("%v, with %d answers", got, n)
		}
		for _, q := range []string{"shop/", "api", "app%3Dweb", "nobody"} {
			want, got := keys(moments[0].rows[""]), keys(get[rowsAnswer](r, asOf("/api/tables/pods?q=\""+q+"\"", moments[0].at)))
			if len(got) > len(want) || q == "nobody" != (len(got) == 0) || len(r.site.past.all) > n+1 {
				t.Errorf("%s: %v of %v, with %d answers instead of %d", q, got, want, len(r.site.past.all), n)
			}
		}
	})
}

// The states of an object, with what changed, of all objects that had the name.
func TestObjectHistory(t *testing.T) {
	inThePast(t, rigOptions{objects: []runtime.Object{pod("default", "web-1", phase(corev1.PodPending)), pod("default", "other")}}, func(r *rig) {
		r.put(pod("default", "web-1"))
		time.Sleep(time.Second)
		changed := time.Now()
		r.put(pod("default", "web-1", func(p *corev1.Pod) { p.Spec.NodeName, p.Labels = "node-2", map[string]string{"app": "shop"} }))
		time.Sleep(time.Second)
		r.remove(pod("default", "web-1"))
		time.Sleep(time.Second)
		r.put(pod("default", "web-1", phase(corev1.PodFailed)))

		found := get[objectHistory](r, "/api/history/pods/default/web-1")
		want := []string{
			"added Failed", "deleted Running",
			"modified Running metadata.generation=2 metadata.labels.app=shop spec.nodeName=node-2",
			"modified Running status.phase=Running", "added Pending",
		}
		if diff := cmp.Diff(want, story(found.States)); diff != "" {
			t.Fatalf("want -, got +\n%s", diff)
		}
		third := found.States[2]
		if third.Time != stamp(changed) || third.Until != stamp(changed.Add(time.Second)) || third.UID == found.States[0].UID || found.Since == "" || found.Continue != "" {
			t.Errorf("the state is %+v, in %+v", third, found.pastAnswer)
		}
		if e := third.Edits[2]; e != (render.Edit{Path: "spec.nodeName", Old: "node-1", New: "node-2", Op: "change"}) {
			t.Errorf("the edit is %+v", e)
		}
		for limit := 1; limit <= 3; limit++ {
			var paged []pastState
			for token := ""; ; {
				page := get[objectHistory](r, fmt.Sprintf("/api/history/pods/default/web-1?limit=%d&continue=%s", limit, token))
				paged = append(paged, page.States...)
				if token = page.Continue; token == "" {
					break
				}
			}
			if diff := cmp.Diff(found.States, paged); diff != "" {
				t.Errorf("in pages of %d: want -, got +\n%s", limit, diff)
			}
		}

		one := get[wholeState](r, fmt.Sprintf("/api/history/pods/default/web-1?state=%d", third.State))
		if diff := cmp.Diff(third, one.pastState); diff != "" || one.Created == "" {
			t.Errorf("alone: want -, got +\n%s", diff)
		}
		whole := r.ask(fmt.Sprintf("/api/history/pods/default/web-1?as=yaml&state=%d", third.State)).Body.String()
		if !strings.Contains(whole, "nodeName: node-2") || !strings.Contains(whole, "phase: Running") {
			t.Errorf("as YAML it is\n%s", whole)
		}
		bounds := get[tableHistory](r, "/api/history/pods")
		if bounds.States != 6 || bounds.Since == "" || bounds.Time != stamp(time.Now()) || len(bounds.Gaps) != 0 {
			t.Errorf("the history is %+v", bounds)
		}
	})
}

// A relist after an outage is a gap, in every answer that touches it.
func TestPastGaps(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "encrypted": make([]byte, 32)} {
		t.Run(name, func(t *testing.T) {
			down := &outage{}
			inThePast(t, rigOptions{objects: []runtime.Object{pod("default", "web-1")}, outage: down, key: key}, func(r *rig) {
				r.put(pod("default", "other")) // the last change that the mirror receives
				before := time.Now()
				down.begin()
				for _, p := range []corev1.PodPhase{corev1.PodPending, corev1.PodFailed} {
					if err := r.server.Put(pod("default", "web-1", phase(p))); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(10 * time.Second)
				within := time.Now()
				r.server.Compact()
				down.end()
				time.Sleep(2 * time.Minute)

				for _, test := range []struct {
					at     time.Time
					status string
					gaps   int
				}{{before, "Running", 0}, {within, "Running", 1}, {time.Now(), "Failed", 0}} {
					got := get[rowsAnswer](r, asOf("/api/tables/pods?q=web-1", test.at))
					if len(got.Rows) != 1 || got.Rows[0].Cells[3] != test.status || len(got.Past.Gaps) != test.gaps {
						t.Errorf("at %s: %+v with %+v", test.at, got.Rows, got.Past.Gaps)
					}
				}
				found := get[objectHistory](r, "/api/history/pods/default/web-1")
				if diff := cmp.Diff([]string{"modified Failed status.phase=Failed", "gap: read anew", "added Running"}, story(found.States)); diff != "" {
					t.Errorf("want -, got +\n%s", diff)
				}
				all := get[tableHistory](r, "/api/history/pods").Gaps
				if len(all) != 1 || all[0] != *found.States[1].Gap || all[0] != found.Gaps[0] {
					t.Errorf("the gaps are %+v, and of the object %+v", all, found.States[1].Gap)
				}
			})
		})
	}
}

// What cannot be answered is refused in one line that says why.
func TestPastRefused(t *testing.T) {
	check := func(r *rig, path string, status int, words string) {
		r.t.Helper()
		answer := r.ask(path)
		if text := answer.Body.String(); answer.Code != status || !strings.Contains(text, words) || strings.Count(text, "\n") > 1 {
			r.t.Errorf("%s: %d %s, want %d and %q", path, answer.Code, text, status, words)
		}
	}
	inThePast(t, rigOptions{objects: []runtime.Object{pod("default", "web-1")}}, func(r *rig) {
		for path, want := range map[string]struct {
			status int
			words  string
		}{
			asOf("/api/tables/pods", time.Now().Add(-time.Hour)): {http.StatusGone, "pods: the log no longer keeps that: its history begins at"},
			asOf("/api/tables/pods", time.Now().Add(time.Hour)):  {http.StatusBadRequest, "in the future"},
			"/api/tables/pods?at=yesterday":                      {http.StatusBadRequest, "at=yesterday: a time such as"},
			"/api/tables/pods?at=1s&continue=x":                  {http.StatusBadRequest, "another query or moment"},
			"/api/tables/pods?at=1s&q=.status.phase%3E":          {http.StatusBadRequest, ""},
			"/api/tables/pods?at=1s&sort=spec.containers":        {http.StatusBadRequest, "has no order"},
			"/api/tables/pods?at=1s&limit=5000":                  {http.StatusBadRequest, "limit=5000"},
			"/api/tables/secrets?at=1s":                          {http.StatusNotFound, "secrets: no history is kept: Secrets are not written to disk"},
			"/api/history/secrets":                               {http.StatusNotFound, "Secrets are not written to disk"},
			"/api/history/nonsense":                              {http.StatusNotFound, "not mirrored"},
			"/api/history/pods/default/nobody":                   {http.StatusNotFound, `nothing is known of \"default/nobody\"`},
			"/api/history/pods/default/web-1?state=77":           {http.StatusNotFound, "no state 77"},
			"/api/history/pods/default/web-1?state=first":        {http.StatusBadRequest, "state=first"},
			"/api/history/pods/default/web-1?as=yaml":            {http.StatusBadRequest, "as=yaml"},
			"/api/history/pods/default/web-1?limit=0":            {http.StatusBadRequest, "limit=0"},
		} {
			check(r, path, want.status, want.words)
		}
	})
	for name, opts := range map[string]rigOptions{"in memory": {}, "on disk": {disk: &mirror.Disk{}}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, opts)
			for _, path := range []string{"/api/tables/pods?at=1s", "/api/history/pods", "/api/history/pods/default/web-1"} {
				check(r, path, http.StatusNotFound, "pods: no history is kept: start the mirror with --to DIR and --history")
			}
			for _, table := range get[overview](r, "/api/tables").Tables {
				if table.KeepsHistory {
					t.Errorf("%s keeps a history", table.Name)
				}
			}
		})
	}
	t.Run("without the token", func(t *testing.T) {
		r := newRig(t, rigOptions{disk: &mirror.Disk{}, history: keepAll, web: Options{Token: testToken}})
		for _, path := range []string{"/api/tables/pods?at=1s", "/api/history/pods", "/api/history/pods/default/web-1"} {
			check(r, path, http.StatusUnauthorized, "a token is needed")
		}
	})
}

// Values of Secrets are hidden in the past as in the present, even if the disk has them.
func TestPastHidesSecrets(t *testing.T) {
	opts := rigOptions{objects: []runtime.Object{secret("db", "swordfish-1")}, disk: &mirror.Disk{Secrets: true, LastApplied: true}, mirror: mirror.Options{ShowSecrets: true}}
	inThePast(t, opts, func(r *rig) {
		at := time.Now()
		r.put(secret("db", "swordfish-2"))
		time.Sleep(time.Second)
		found := get[objectHistory](r, "/api/history/secrets/default/db")
		if len(found.States) != 2 {
			t.Fatalf("the states are %+v", found.States)
		}
		for _, path := range []string{
			asOf("/api/tables/secrets", at), "/api/history/secrets", "/api/history/secrets/default/db",
			fmt.Sprintf("/api/history/secrets/default/db?state=%d", found.States[0].State), fmt.Sprintf("/api/history/secrets/default/db?as=yaml&state=%d", found.States[0].State),
		} {
			for _, value := range []string{"swordfish", "c3dvcmRmaXNo"} {
				if text := r.ask(path).Body.String(); strings.Contains(text, value) {
					t.Errorf("%s: %s", path, text)
				}
			}
		}
		for _, q := range []string{"q=.data.password=c3dv", "sort=data.password"} {
			if answer := r.ask(asOf("/api/tables/secrets?"+q, at)); answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "hidden") {
				t.Errorf("%s: %d %s", q, answer.Code, answer.Body)
			}
		}
	})
	opts.disk, opts.web.ShowSecrets = &mirror.Disk{Secrets: true}, true
	inThePast(t, opts, func(r *rig) {
		state := get[objectHistory](r, "/api/history/secrets/default/db").States[0].State
		if text := r.ask(fmt.Sprintf("/api/history/secrets/default/db?as=yaml&state=%d", state)).Body.String(); !strings.Contains(text, "c3dvcmRmaXNo") {
			t.Errorf("where values are shown it is %s", text)
		}
	})
}

// The rows that are kept are bounded, and unused ones are dropped.
func TestPastCache(t *testing.T) {
	now := time.Now()
	c := newPastCache()
	c.now = func() time.Time { return now }
	key := func(n int) pastKey { return pastKey{table: fmt.Sprint(n)} }
	for i := range 5 {
		now = now.Add(time.Second)
		c.put(key(i), []pastRow{}, maxPastBytes/4)
	}
	c.put(key(9), nil, maxPastBytes+1)
	kept := ""
	for i := range 10 {
		if _, ok := c.get(key(i)); ok {
			kept += fmt.Sprint(i)
		}
	}
	if kept != "1234" {
		t.Errorf("%s are kept", kept)
	}
	now = now.Add(orderIdle + time.Second)
	if _, ok := c.get(key(4)); ok || len(c.all) != 0 {
		t.Errorf("%d are kept after a while", len(c.all))
	}
}
