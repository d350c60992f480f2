package mirror

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// forge changes what the server says of one object, where the request is one of
// those.
func forge(those func(query map[string][]string) bool) func(*http.Request, http.RoundTripper) (*http.Response, error) {
	return func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil || !those(req.URL.Query()) {
			return resp, err
		}
		resp.Body, resp.ContentLength = forged{resp.Body}, -1
		return resp, nil
	}
}

type forged struct{ io.ReadCloser }

func (f forged) Read(b []byte) (int, error) {
	n, err := f.ReadCloser.Read(b)
	copy(b, bytes.ReplaceAll(b[:n], []byte(`{"version":"`), []byte(`{"verzion":"`)))
	return n, err
}

// What a comparison repairs is a problem that is over; it says what was wrong.
func TestRepairedDifferencesAreProblems(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.put("shop", "a")
		r.interfere(forge(func(map[string][]string) bool { return true }))
		m, end := r.start(Options{Verify: time.Minute}, "configmaps")
		defer end()
		r.synced(m)
		r.interfere(nil)
		time.Sleep(3 * time.Minute)
		problems := m.Problems()
		if len(problems) != 1 {
			r.Fatalf("problems %+v", problems)
		}
		p := problems[0]
		if p.What != "the copy was not as the server has it" || !p.Over() || !strings.Contains(p.Detail, "read anew, and equal since") || !strings.Contains(p.Detail, "data") || !strings.Contains(p.Advice, "right again") || p.Count != 1 {
			r.Errorf("%+v", p)
		}
		table, _ := m.Table("configmaps")
		if v := table.Verified(); v.Repairs != 1 || v.Found != 1 || v.Rounds < 2 {
			r.Errorf("%+v", v)
		}
		object, _ := table.Replica().Get("shop/a")
		if _, right := object.Object["data"].(map[string]any)["version"]; !right {
			r.Errorf("the copy has %v", object.Object)
		}
	})
}

// What it cannot repair lasts, until it is found equal.
func TestLastingDifferencesAreProblems(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.put("shop", "a")
		r.interfere(forge(func(query map[string][]string) bool {
			return len(query["resourceVersionMatch"]) > 0 && query["resourceVersionMatch"][0] == "Exact"
		}))
		m, end := r.start(Options{Verify: time.Minute}, "configmaps")
		defer end()
		time.Sleep(3 * time.Minute)
		problems := m.Problems()
		if len(problems) != 1 || problems[0].What != "the copy is not as the server has it" || problems[0].Over() || problems[0].Count < 2 {
			r.Fatalf("problems %+v", problems)
		}
		r.interfere(nil)
		time.Sleep(3 * time.Minute)
		// A round that was under way when the answers became right found and repaired a
		// difference, which is a problem of its own.
		if problems = m.Problems(); len(problems) == 0 {
			r.Error("after it was found equal, nothing is said of what was wrong")
		}
		for _, p := range problems {
			if !p.Over() {
				r.Errorf("after it was found equal: %+v", p)
			}
		}
	})
}

func TestUnaskedNothingIsCompared(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.put("shop", "a")
		m, end := r.start(Options{}, "configmaps")
		defer end()
		time.Sleep(time.Hour)
		if v := m.Tables()[0].Verified(); v.Rounds != 0 || v.Last != nil {
			r.Errorf("%+v", v)
		}
	})
}
