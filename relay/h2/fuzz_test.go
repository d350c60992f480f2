package h2

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// FuzzFrames sends anything to a connection. It must end when its client has gone, with all
// its handlers.
func FuzzFrames(f *testing.F) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":path", "/echo"}, {":authority", "a"}, {"content-length", "5"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	var all bytes.Buffer
	framer := http2.NewFramer(&all, nil)
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	_ = framer.WriteData(1, false, []byte("body"))
	_ = framer.WritePing(false, [8]byte{1})
	_ = framer.WriteWindowUpdate(1, 100)
	_ = framer.WriteWindowUpdate(0, 100)
	_ = framer.WriteDataPadded(1, true, []byte("."), make([]byte, 9))
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
	_ = framer.WriteRSTStream(3, http2.ErrCodeCancel)
	_ = framer.WritePriority(5, http2.PriorityParam{StreamDep: 1})
	_ = framer.WriteGoAway(0, http2.ErrCodeNo, nil)
	f.Add(all.Bytes())
	for i := range all.Len() / 10 {
		cut := bytes.Clone(all.Bytes())
		cut[10*i] ^= 0x41
		f.Add(cut)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		client, server := net.Pipe()
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(io.Discard, client)
		}()
		served := make(chan struct{})
		go func() {
			defer close(served)
			all := &conns{open: map[*conn]struct{}{}}
			all.serveConn(&http.Server{}, server, answers)
		}()
		_, _ = io.WriteString(client, http2.ClientPreface)
		_, _ = client.Write(data)
		_ = client.Close()
		<-read
		<-served
	})
}
