package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tarnproject/tarn/internal/render"
)

// failure is an error with the status that a client should see. Every error of
// the API looks the same: {"error": "…"}.
type failure struct {
	status  int
	message string
}

func (f *failure) Error() string { return f.message }

func badRequest(err error) *failure { return &failure{http.StatusBadRequest, err.Error()} }

func notFound(message string) *failure { return &failure{http.StatusNotFound, message} }

// answer makes a handler of a function that returns the answer.
func answer(f func(r *http.Request) (any, *failure)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, problem := f(r)
		if problem != nil {
			fail(w, problem)
			return
		}
		if object, ok := value.(yaml); ok {
			w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
			_ = render.WriteYAML(w, object) // the client is gone, or too slow
			return
		}
		writeJSON(w, http.StatusOK, value)
	}
}

// yaml is an answer that is not JSON. It is written while it is computed.
type yaml map[string]any

func fail(w http.ResponseWriter, f *failure) {
	writeJSON(w, f.status, map[string]string{"error": f.message})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append([]byte(encodeJSON(value)), '\n'))
}

// encodeJSON leaves < and > unescaped: none of it is ever put into HTML.
func encodeJSON(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return `{"error":"this cannot be written as JSON"}`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
