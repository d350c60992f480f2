package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (s *Server) addControl() {
	answer := func(w http.ResponseWriter, what any) {
		w.Header().Set("Content-Type", typeJSON)
		json.NewEncoder(w).Encode(what)
	}
	s.mux.HandleFunc("GET /bench/info", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.info) })
	s.mux.HandleFunc("POST /bench/burst", func(w http.ResponseWriter, r *http.Request) {
		if err := s.burst(r.Context(), r.URL.Query()); err != nil {
			fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err)
			return
		}
		answer(w, struct{}{})
	})
}

// burst waits for a watch to take it.
func (s *Server) burst(ctx context.Context, q url.Values) error {
	f := s.forms[Format(q.Get("format"))]
	from, err1 := strconv.Atoi(q.Get("from"))
	to, err2 := strconv.Atoi(q.Get("to"))
	if f == nil || err1 != nil || err2 != nil || from < 0 || from >= to || to > len(f.updates) {
		return fmt.Errorf("burst of %s: there is no such format, or it has no such updates", q.Encode())
	}
	select {
	case f.bursts <- span{from, to}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no watch of format %s has come", q.Get("format"))
	}
}

// Control commands a server from another process.
type Control struct{ URL string }

// Info reads what the server serves.
func (c Control) Info(ctx context.Context) (info Info, err error) {
	err = c.call(ctx, http.MethodGet, "/bench/info", &info)
	return info, err
}

// Burst has the updates from one index up to another sent to the watch of a
// format; it returns when they are on their way. The same updates may be sent
// again to another client.
func (c Control) Burst(ctx context.Context, format Format, from, to int) error {
	var nothing struct{}
	return c.call(ctx, http.MethodPost, fmt.Sprintf("/bench/burst?format=%s&from=%d&to=%d", format, from, to), &nothing)
}

func (c Control) call(ctx context.Context, method, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask the replay server: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("ask the replay server for %s: %w", path, err)
	}
	return nil
}
