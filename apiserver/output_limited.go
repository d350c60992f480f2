package apiserver

import (
	"net/http"
	"time"
)

// limited is the writer of an answer that is not a watch. It gives the client a bounded time
// for each part of the answer: a client that stops reading would otherwise hold a state of the
// resource for as long as its connection lasts.
//
// Why not a limit for the whole answer, as kube-apiserver has it: a list may have a gigabyte, and
// a slow client that keeps reading gets all of it.
type limited struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	// left is how much may be written before the deadline is set again.
	left int
}

func newLimited(w http.ResponseWriter, timeout time.Duration) *limited {
	return &limited{ResponseWriter: w, control: http.NewResponseController(w), timeout: timeout}
}

// Write writes large data in parts. What the server has buffered at the end is sent under the
// last deadline, which the server removes before the next request.
func (w *limited) Write(data []byte) (n int, err error) {
	for {
		if w.left <= 0 {
			w.left = flushFrom
			_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) // writers that have none do not block
		}
		part := data[n:min(len(data), n+w.left)]
		written, err := w.ResponseWriter.Write(part)
		n, w.left = n+written, w.left-written
		if err != nil || n >= len(data) {
			return n, err
		}
	}
}
