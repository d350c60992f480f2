package h2

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
)

// blocked is a client that has begun two requests with large answers, and reads nothing of them.
type blocked struct {
	net.Conn
	*http2.Framer
	// ended has why the connection ended.
	ended chan http2.ErrCode
	// read has the client read.
	read chan struct{}
}

// block connects a client without buffers between it and the server.
func block(t *testing.T, handler http.HandlerFunc) *blocked {
	client, server := net.Pipe()
	b := &blocked{client, http2.NewFramer(client, client), make(chan http2.ErrCode, 1), make(chan struct{})}
	all := &conns{open: map[*conn]struct{}{}}
	go all.serveConn(&http.Server{}, server, handler)
	go func() {
		for {
			f, err := b.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.DataFrame:
				<-b.read
			case *http2.GoAwayFrame:
				b.ended <- f.ErrCode
			}
		}
	}()
	_, _ = io.WriteString(client, http2.ClientPreface)
	_ = b.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
	_ = b.WriteWindowUpdate(0, 1<<30)
	begin(t, b.Framer, 1)
	begin(t, b.Framer, 3)
	synctest.Wait() // the server waits until the client reads
	return b
}

// What a client sends is taken while the client does not read: it may write and read with one
// lock, so that it reads again only when it has sent its data.
func TestUploadWhileTheClientDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		uploaded := make(chan int64, 1)
		var requests atomic.Int64
		b := block(t, func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) <= 2 {
				_, _ = w.Write(make([]byte, 1<<20))
				return
			}
			n, _ := io.Copy(io.Discard, r.Body)
			uploaded <- n
		})
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			begin(t, b.Framer, 5)
			_ = b.WriteData(5, true, make([]byte, 10_000))
		}()
		synctest.Wait()
		select {
		case n := <-uploaded:
			if n != 10_000 {
				t.Errorf("the server read %d bytes", n)
			}
		default:
			t.Error("the server does not read what the client sends")
		}
		close(b.read)
		<-sent
		_ = b.Close()
	})
}

// A client that cuts off request after request, and reads nothing, is cut off, although each
// request only leaves a few bytes.
func TestUnreadEndsOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := block(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(make([]byte, 1<<20))
			_, _ = io.Copy(io.Discard, r.Body)
		})
		most := mostUnread / 9 // a frame has at least as many bytes
		cut := 0
		for ; cut < most; cut++ {
			id := uint32(5 + 2*cut)
			if b.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: requestHead(), EndHeaders: true}) != nil ||
				b.WriteData(id, false, []byte("x")) != nil || b.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
				break
			}
			if cut%100 == 0 {
				synctest.Wait() // the handlers have returned
			}
		}
		if cut == most {
			t.Errorf("the server took %d requests", cut)
		}
		close(b.read)
		_ = b.Close()
	})
}

// A client that asks for answers to its frames, and reads none, is cut off.
func TestUnreadReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := block(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
		var sent int
		for ; sent < 1<<20; sent++ {
			if b.WritePing(false, [8]byte{}) != nil {
				break
			}
		}
		if most := mostReplies/17 + 1; sent > most {
			t.Errorf("the server took %d pings, want at most %d", sent, most)
		}
		close(b.read)
		_ = b.Close()
	})
}
