package mirror

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/sqlite"
)

// A problem begins with the first failure and ends when the table follows again.
func TestProblemsBeginAndEnd(t *testing.T) {
	for _, test := range []struct {
		name, what, advice string
		fail               func(*http.Request) (*http.Response, error)
	}{
		{"forbidden", "not allowed to list or watch", "grant the verbs list and watch on configmaps in the core group", func(req *http.Request) (*http.Response, error) {
			return answer(req, http.StatusForbidden, metav1.StatusReasonForbidden), nil
		}},
		{"unauthorized", "the credentials are not accepted", "expired", func(req *http.Request) (*http.Response, error) {
			return answer(req, http.StatusUnauthorized, metav1.StatusReasonUnauthorized), nil
		}},
		{"unreachable", "nobody answers at the server's address", "is the server up", func(req *http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				r.put("a", "one")
				var mu sync.Mutex
				var told []error
				onError := func(table string, err error) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, fmt.Errorf("%s: %w", table, err))
				}
				r.interfere(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
					if strings.HasSuffix(req.URL.Path, "/configmaps") {
						return test.fail(req)
					}
					return next.RoundTrip(req)
				})
				began := time.Now()
				m, end := r.start(Options{OnError: onError}, "configmaps", "namespaces")
				defer end()
				time.Sleep(30 * time.Second)
				problems := m.Problems()
				if len(problems) != 1 {
					r.Fatalf("problems %+v", problems)
				}
				p := problems[0]
				if p.Table != "configmaps" || p.What != test.what || !strings.Contains(p.Advice, test.advice) || p.Over() || !p.Since.Equal(began) {
					r.Errorf("%+v", p)
				}
				mu.Lock()
				if p.Count != len(told) || p.Count < 2 || !strings.Contains(told[len(told)-1].Error(), p.Detail) {
					r.Errorf("count %d, told %v, detail %s", p.Count, told, p.Detail)
				}
				mu.Unlock()
				r.interfere(nil)
				r.synced(m)
				recovered := time.Now()
				p = m.Problems()[0]
				if !p.Until.Equal(recovered) {
					r.Errorf("it is %s and the problem ended at %s", recovered, p.Until)
				}
				time.Sleep(time.Minute)
				if again := m.Problems(); len(again) != 1 || again[0] != p {
					r.Errorf("%+v, then %+v", p, again)
				}
			})
		})
	}
}

// Nobody needs to ask: a problem's end is noticed within a second.
func TestProblemEndsUnasked(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.interfere(func(req *http.Request, _ http.RoundTripper) (*http.Response, error) {
			return answer(req, http.StatusForbidden, metav1.StatusReasonForbidden), nil
		})
		m, end := r.start(Options{}, "configmaps")
		defer end()
		time.Sleep(5 * time.Second)
		r.interfere(nil)
		r.synced(m)
		recovered := time.Now()
		time.Sleep(time.Hour)
		if p := m.Problems(); len(p) != 1 || p[0].Until.Sub(recovered) > time.Second {
			r.Errorf("recovered at %s: %+v", recovered, p)
		}
	})
}

// In a table of several namespaces a problem lasts as long as one has it.
func TestProblemsOfSections(t *testing.T) {
	inBubble(t, func(r *rig) {
		fail := func(forbidden, lost string) {
			r.interfere(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				switch {
				case forbidden != "" && strings.Contains(req.URL.Path, forbidden):
					return answer(req, http.StatusForbidden, metav1.StatusReasonForbidden), nil
				case lost != "" && strings.Contains(req.URL.Path, lost):
					return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				}
				return next.RoundTrip(req)
			})
		}
		lasting := func(m *Mirror) (all []string) {
			for _, p := range m.Problems() {
				if !p.Over() {
					all = append(all, p.What)
				}
			}
			return all
		}
		fail("/a/", "/b/")
		m, end := r.start(Options{Namespaces: []string{"a", "b", "c"}}, "configmaps")
		defer end()
		time.Sleep(time.Minute)
		if got := lasting(m); len(got) != 2 {
			r.Errorf("%q", got)
		}
		fail("/a/", "")
		time.Sleep(time.Minute)
		if got := lasting(m); len(got) != 1 || got[0] != "not allowed to list or watch" {
			r.Errorf("%q", got)
		}
		fail("", "")
		r.synced(m)
		if got := lasting(m); len(got) != 0 {
			r.Errorf("%q", got)
		}
	})
}

// A bad object is a problem until it is good, or gone.
func TestBadObjectIsAProblem(t *testing.T) {
	inBubble(t, func(r *rig) {
		if err := r.server.Register(apiserver.Kind{Group: "example.org", Version: "v1", Kind: "Widget"}); err != nil {
			r.Fatal(err)
		}
		var err error
		if r.catalog, err = Discover(r.Context(), r.config()); err != nil {
			r.Fatal(err)
		}
		put := func(name, note string) {
			if err := r.server.Put(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "a", "name": name}, "spec": map[string]any{"note": note},
			}}); err != nil {
				r.Fatal(err)
			}
		}
		r.interfere(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if err == nil {
				resp.Body = poisoned{resp.Body}
			}
			return resp, err
		})
		put("good", "fine")
		put("bad", "poison")
		var told []tarn.BadObject
		m, end := r.start(Options{OnBad: func(_ string, bad tarn.BadObject) { told = append(told, bad) }}, "widgets")
		defer end()
		r.synced(m)
		problems := m.Problems()
		if got := keys(r.table(m, "widgets.example.org")); got != "a/good" || len(problems) != 1 || len(told) != 1 {
			r.Fatalf("has %s, problems %+v, told %v", got, problems, told)
		}
		if p := problems[0]; p.What != "there are objects that could not be taken" || !strings.HasPrefix(p.Detail, "a/bad: ") || p.Over() || p.Count != 1 {
			r.Errorf("%+v", p)
		}
		put("bad", "cured")
		synctest.Wait()
		if p := m.Problems(); len(p) != 1 || !p[0].Over() {
			r.Errorf("%+v", p)
		}
	})
}

// poisoned makes no JSON of some objects.
type poisoned struct{ io.ReadCloser }

func (p poisoned) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	copy(b, bytes.ReplaceAll(b[:n], []byte(`"poison"`), []byte(`poison!!`)))
	return n, err
}

func TestProblemsAreBounded(t *testing.T) {
	var ps problems
	table := Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespaced: true}
	now := time.Unix(0, 0)
	d := func(i int) diagnosis {
		return diagnosis{what: fmt.Sprint("problem ", i), detail: "x", advice: always("do this")}
	}
	healthy := func() []diagnosis { return nil }
	for i := range 3 * maxProblems {
		now = now.Add(time.Second)
		ps.met(now, table, d(i))
		ps.review(now, table, healthy)
	}
	all := ps.all()
	if len(all) != maxProblems || all[0].What != fmt.Sprint("problem ", 3*maxProblems-1) || !all[0].Since.After(all[1].Since) {
		t.Errorf("%d problems, first %+v", len(all), all[0])
	}
	// Soon after, it is the same one again; later, another.
	ps.met(now.Add(relapse/2), table, d(3*maxProblems-1))
	if p := ps.all()[0]; p.Count != 2 || p.Over() || !p.Since.Equal(now) {
		t.Errorf("a relapse: %+v", p)
	}
	ps.review(now.Add(relapse/2), table, healthy)
	ps.met(now.Add(2*relapse), table, d(3*maxProblems-1))
	if p := ps.all()[0]; p.Count != 1 || p.Over() || !p.Since.After(now) {
		t.Errorf("another one: %+v", p)
	}
	// Those that last are never dropped.
	for i := range 2 * maxProblems {
		ps.met(now, table, d(i))
	}
	if all := ps.all(); len(all) != 2*maxProblems+1 {
		t.Errorf("%d problems last", len(all))
	}
}

func TestDiagnose(t *testing.T) {
	deployments := Resource{GVR: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespaced: true}
	nodes := Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}}
	gr := deployments.GVR.GroupResource()
	for _, test := range []struct {
		err    error
		what   string
		advice string
	}{
		{apierrors.NewForbidden(gr, "", errors.New("x")), "not allowed", "list and watch on deployments in the group apps (kubectl create clusterrole read-deployments --verb=list,watch --resource=deployments.apps"},
		{apierrors.NewUnauthorized("x"), "credentials are not accepted", "log in again"},
		{errors.New(`Get "https://x": getting credentials: exec: executable aws failed`), "no credentials", "run it by hand"},
		{apierrors.NewNotFound(gr, "x"), "not served", "no deployments.apps in version v1"},
		{tarn.Because(tarn.ReasonRefused, 0, errors.New("x")), "nobody answers", "is the server up"},
		{tarn.Because(tarn.ReasonBusy, 0, apierrors.NewTooManyRequestsError("x")), "left alone", "priority"},
		{tarn.Because(tarn.ReasonExpired, 0, apierrors.NewResourceExpired("x")), "no longer known", "by itself"},
		{tarn.Because(tarn.ReasonLost, 0, io.ErrUnexpectedEOF), "broke off", "proxies"},
		{fmt.Errorf("x: %w", tarn.ErrRewound), "back in time", "backup"},
		{fmt.Errorf("x: %w", tarn.ErrSilent), "fell silent", "quiet"},
		{fmt.Errorf("x: %w", tarn.ErrShortWatch), "as soon as they begin", "proxy"},
		{fmt.Errorf("x: %w", tarn.ErrNoInitialEnd), "initial events", "listed instead"},
		{fmt.Errorf("x: %w", tarn.ErrNoList), "not a list", "login page"},
		{fmt.Errorf("x: %w", &net.DNSError{Err: "no such host", Name: "x"}), "name cannot be found", "VPN"},
		{fmt.Errorf("x: %w", &tls.CertificateVerificationError{Err: errors.New("x")}), "not trusted", "certificate authority"},
		{fmt.Errorf("x: %w", &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}), "cannot be reached", "network"},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), "in time", "readyz"},
		{fmt.Errorf("x: %w", syscall.ETIMEDOUT), "in time", "readyz"},
		{fmt.Errorf("x: %w", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}), "not encrypted", "proxy"},
		{apierrors.NewTimeoutError("x", 1), "in time", "readyz"},
		{apierrors.NewServiceUnavailable("x"), "fails inside", "apiservices"},
		{apierrors.NewInternalError(errors.New("x")), "fails inside", "log"},
		{errors.New("x"), "cannot be listed or watched", "tried again"},
	} {
		d := diagnose(test.err)
		if !strings.Contains(d.what, test.what) || !strings.Contains(d.advice(deployments), test.advice) || d.detail != test.err.Error() {
			t.Errorf("%v: %s; %s", test.err, d.what, d.advice(deployments))
		}
	}
	if advice := adviseRBAC(nodes); !strings.Contains(advice, "on nodes in the core group") || strings.Contains(advice, "namespaces") {
		t.Error(advice)
	}
	for _, test := range []struct {
		bad  tarn.BadObject
		want string
	}{
		{tarn.BadObject{Key: "a/b", Err: errors.New("broken")}, "a/b: broken"},
		{tarn.BadObject{Err: errors.New("broken")}, "broken"},
		{tarn.BadObject{}, "an object that could not even be named"},
	} {
		if d := diagnoseBad(test.bad); d.detail != test.want {
			t.Errorf("%s, want %s", d.detail, test.want)
		}
	}
}

// A log that a reader keeps from being emptied is a problem of its own, with another
// advice than a full disk.
func TestDiskProblems(t *testing.T) {
	for _, c := range []struct {
		err    error
		advice string
	}{{errors.New("disk full"), "is the disk full"}, {fmt.Errorf("x: %w", sqlite.ErrLogFull), "end the tool"}} {
		found := diagnosesOf(tarn.Health{Disk: &tarn.SinkHealth{Err: c.err}}, false)
		if len(found) != 1 || found[0].what != "cannot be written to disk" || !strings.Contains(found[0].advice(Resource{}), c.advice) {
			t.Errorf("%v is told as %+v", c.err, found)
		}
	}
}
