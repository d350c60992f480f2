package h2

import (
	"bytes"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// uploader sends bodies on one connection.
type uploader struct {
	*testing.T
	*http2.Framer
	id uint32
	// given has what the client may send more, left why the connection ended.
	given chan int
	left  chan http2.ErrCode
}

func newUploader(t *testing.T, handler http.HandlerFunc) *uploader {
	s, _ := start(t, Configure, handler)
	_, framer := dial(t, s)
	u := &uploader{t, framer, 1, make(chan int, 1000), make(chan http2.ErrCode, 1)}
	go func() {
		for {
			f, err := framer.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.WindowUpdateFrame:
				if f.StreamID == 0 {
					u.given <- int(f.Increment)
				}
			case *http2.GoAwayFrame:
				u.left <- f.ErrCode
			}
		}
	}()
	const initial = 65535
	if n := initial + <-u.given; n != uploadsWindow {
		t.Fatalf("a client may send %d bytes, want %d", n, uploadsWindow)
	}
	return u
}

// fill sends as much as the connection may, in as few requests as possible.
func (u *uploader) fill() {
	u.Helper()
	data := make([]byte, frameSize)
	for room := uploadsWindow; room > 0; u.id += 2 {
		begin(u.T, u.Framer, u.id)
		for left := min(room, uploadWindow); left > 0; {
			part := data[:min(len(data), left)]
			if err := u.WriteData(u.id, false, part); err != nil {
				u.Fatal(err)
			}
			left, room = left-len(part), room-len(part)
		}
	}
}

// returned waits until as much may be sent again.
func (u *uploader) returned() {
	for back := 0; back < uploadsWindow; back += <-u.given {
	}
}

// What clients send and nobody reads is bounded for a connection, not only for each request.
func TestUnreadUploads(t *testing.T) {
	release := make(chan struct{})
	u := newUploader(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	u.fill()
	begin(t, u.Framer, u.id)
	_ = u.WriteData(u.id, false, []byte("one too many")) // the server may have ended the connection
	if code := <-u.left; code != http2.ErrCodeFlowControl {
		t.Errorf("the connection ended with %v", code)
	}
}

// As much may be sent again when requests have ended without reading it, and when they have
// ended before it came.
func TestEndedUploads(t *testing.T) {
	release := make(chan struct{})
	u := newUploader(t, func(http.ResponseWriter, *http.Request) { <-release })
	u.fill()
	close(release)
	u.returned()
	u.fill()
	u.returned()
}

// begin begins a request with a body.
func begin(t *testing.T, framer *http2.Framer, id uint32) {
	t.Helper()
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: requestHead(), EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
}

// requestHead is the header of an upload.
func requestHead() []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":path", "/"}, {":authority", "a"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	return block.Bytes()
}
