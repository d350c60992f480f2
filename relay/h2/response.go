package h2

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// response is the answer to a request, as handlers see it. Small writes gather until they are
// flushed, or are many.
type response struct {
	*stream
	request *http.Request
	header  http.Header
	status  int
	// sent says that the headers were.
	sent bool
	held *bytes.Buffer
}

// mostHeld is how much gathers before it is sent.
const mostHeld = 4 << 10

var holders = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (w *response) serve(tooLarge bool) {
	defer w.finish()
	defer func() {
		if fault := recover(); fault != nil {
			w.c.mu.Lock()
			w.c.putReset(w.id, http2.ErrCodeInternal)
			w.fail(fmt.Errorf("the handler has panicked: %v", fault))
			w.c.flush()
			w.c.mu.Unlock()
			if fault != http.ErrAbortHandler && w.c.server.ErrorLog != nil {
				w.c.server.ErrorLog.Printf("http2: panic serving %s: %v\n%s", w.request.RemoteAddr, fault, debug.Stack())
			}
		}
	}()
	if tooLarge {
		w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
		return
	}
	w.c.handler.ServeHTTP(w, w.request)
}

// finish sends what is left.
func (w *response) finish() {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.err == nil {
		if !w.sent {
			w.begin(true)
		}
		if !w.headersOnly() {
			_ = w.write(w.takeHeld(), true) // the stream knows
		}
		if w.err == nil && !w.received {
			c.putReset(w.id, http2.ErrCodeNo)
		}
	}
	w.release()
	if w.late != nil {
		w.late.Stop()
	}
	w.closeBody()
	c.flush()
	w.cancel()
	w.remove()
	c.handlers--
}

func (w *response) heldSize() int {
	if w.held == nil {
		return 0
	}
	return w.held.Len()
}

func (w *response) takeHeld() []byte {
	if w.held == nil {
		return nil
	}
	return w.held.Bytes()
}

func (w *response) release() {
	if w.held != nil {
		w.held.Reset()
		holders.Put(w.held)
		w.held = nil
	}
}

// headersOnly says that the answer has no body, and empty that its handler may not write one.
func (w *response) headersOnly() bool { return w.request.Method == http.MethodHead || w.empty() }

func (w *response) empty() bool {
	return w.status == http.StatusNoContent || w.status == http.StatusNotModified
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	if status >= 100 && status < 200 {
		w.c.mu.Lock()
		defer w.c.mu.Unlock()
		if w.err == nil && status != http.StatusSwitchingProtocols {
			w.putStatus(status, w.header, false)
			w.c.flush()
		}
		return
	}
	w.status = status
	w.header = w.header.Clone() // later changes are not sent
}

func (w *response) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.empty() {
		return 0, http.ErrBodyNotAllowed
	}
	if w.heldSize()+len(data) < mostHeld {
		if w.held == nil {
			w.held = holders.Get().(*bytes.Buffer)
		}
		return w.held.Write(data)
	}
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := w.sendHeld(data); err != nil {
		return 0, err
	}
	if !w.headersOnly() {
		if err := w.write(data, false); err != nil {
			return 0, err
		}
	}
	w.stream.flush()
	return len(data), w.err
}

// sendHeld sends the headers and what has gathered. next is what follows.
func (w *response) sendHeld(next []byte) error {
	if w.err != nil {
		return w.err
	}
	if !w.sent {
		w.sniff(next)
		w.begin(false)
	}
	var err error
	if w.heldSize() > 0 && !w.headersOnly() {
		err = w.write(w.takeHeld(), false)
	}
	w.release()
	return err
}

func (w *response) sniff(next []byte) {
	if w.header.Get("Content-Encoding") != "" || w.header.Get("Content-Type") != "" {
		return
	}
	if w.heldSize() > 0 {
		next = w.takeHeld()
	}
	if len(next) > 0 {
		w.header.Set("Content-Type", http.DetectContentType(next))
	}
}

// begin sends the headers. whole says that everything is there that will be.
func (w *response) begin(whole bool) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.sent = true
	if w.heldSize() > 0 {
		w.sniff(nil)
	}
	if _, ok := w.header["Content-Length"]; !ok && whole && !w.empty() && (w.heldSize() > 0 || !w.headersOnly()) {
		w.header.Set("Content-Length", strconv.Itoa(w.heldSize()))
	}
	if _, ok := w.header["Date"]; !ok {
		w.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	if w.awaitRoom() == nil {
		w.putStatus(w.status, w.header, w.headersOnly())
	}
}

// putStatus puts headers into out.
func (s *stream) putStatus(status int, header http.Header, last bool) {
	s.c.putHeaders(s.id, last, func(e *hpack.Encoder) {
		_ = e.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(status)}) // to memory
		for name, values := range header {
			name = strings.ToLower(name)
			switch name {
			case "connection", "proxy-connection", "transfer-encoding", "upgrade", "keep-alive", "trailer":
				continue
			}
			if !httpguts.ValidHeaderFieldName(name) { // a key with http.TrailerPrefix has a colon
				continue
			}
			for _, value := range values {
				if httpguts.ValidHeaderFieldValue(value) {
					_ = e.WriteField(hpack.HeaderField{Name: name, Value: value})
				}
			}
		}
	})
}

// FlushError sends what is buffered.
func (w *response) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if err := w.sendHeld(nil); err != nil {
		return err
	}
	w.stream.flush()
	return w.err
}

func (w *response) Flush() { _ = w.FlushError() }

// SetWriteDeadline ends the stream at a time.
func (w *response) SetWriteDeadline(at time.Time) error {
	w.setLate(at)
	return nil
}

// SetReadDeadline is not needed: a body that does not come ends with its connection.
func (w *response) SetReadDeadline(time.Time) error { return nil }

// EnableFullDuplex does nothing: HTTP/2 is always full duplex.
func (w *response) EnableFullDuplex() error { return nil }
