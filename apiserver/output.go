package apiserver

import (
	"context"
	"net/http"
	"time"
)

// output is how the bytes of a watch reach its client.
type output interface {
	// reserved is how many bytes at the beginning of each buffer belong to the output.
	reserved() int
	// begin sends the head of the answer.
	begin(deadline time.Time) error
	// send sends what a buffer has after its reserved bytes, and returns the buffer with
	// nothing but these.
	send(buffer []byte, deadline time.Time) ([]byte, error)
	// end ends the answer. complete says that everything before it was sent.
	end(complete bool)
}

// newOutput returns the output of a request, for which the header of the answer must be
// set. The context that it returns ends with ctx, and when the client has gone.
func newOutput(ctx context.Context, r *request, own bool) (output, context.Context) {
	control := http.NewResponseController(r.w)
	if own && r.ProtoMajor == 1 && r.ProtoMinor == 1 {
		header := r.w.Header()
		if conn, _, err := control.Hijack(); err == nil {
			return newChunked(ctx, conn, header)
		}
	}
	return &response{w: r.w, control: control}, ctx
}

// response is an output by way of net/http.
type response struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (o *response) reserved() int { return 0 }

func (o *response) begin(deadline time.Time) error {
	o.w.WriteHeader(http.StatusOK)
	_, err := o.send(nil, deadline)
	return err
}

// send leaves no deadline behind: it would reset a quiet watch over HTTP/2.
func (o *response) send(buffer []byte, deadline time.Time) ([]byte, error) {
	// Writers that know no deadline, as those of tests, never block.
	_ = o.control.SetWriteDeadline(deadline)
	defer o.control.SetWriteDeadline(time.Time{})
	if len(buffer) > 0 {
		if _, err := o.w.Write(buffer); err != nil {
			return buffer[:0], err
		}
	}
	return buffer[:0], o.control.Flush()
}

func (o *response) end(bool) {}
