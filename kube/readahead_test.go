package kube

import (
	"bytes"
	"errors"
	"io"
	"math/rand"
	"net"
	"testing"
)

// scriptedConn returns pieces of data, one for each read, and then an error, together with
// the last piece if joined is set.
type scriptedConn struct {
	net.Conn
	data   []byte
	sizes  func() int
	err    error
	joined bool
}

func (c *scriptedConn) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, c.err
	}
	n := copy(p, c.data[:min(len(c.data), c.sizes())])
	c.data = c.data[n:]
	if len(c.data) == 0 && c.joined {
		return n, c.err
	}
	return n, nil
}

// Whatever the sizes of reads are, on both sides, the bytes are those of the connection, and
// then its error.
func TestReadAheadKeepsBytes(t *testing.T) {
	cut := errors.New("cut")
	for seed := range int64(50) {
		random := rand.New(rand.NewSource(seed))
		data := make([]byte, 1+random.Intn(1<<20))
		random.Read(data)
		most := 1 + random.Intn(100<<10)
		conn := readAheadOf(&scriptedConn{data: data, sizes: func() int { return 1 + random.Intn(most) }, err: cut, joined: seed%2 == 0})
		var got []byte
		var err error
		for err == nil {
			p := make([]byte, random.Intn(1<<(1+random.Intn(18))))
			var n int
			n, err = conn.Read(p)
			got = append(got, p[:n]...)
		}
		if !bytes.Equal(got, data) || err != cut {
			t.Fatalf("seed %d: %d bytes and %v, want %d and %v", seed, len(got), err, len(data), cut)
		}
	}
}

// A connection that becomes quiet has a small buffer.
func TestReadAheadOfQuietConnection(t *testing.T) {
	size := 1000
	conn := readAheadOf(&scriptedConn{data: make([]byte, 4<<20), sizes: func() int { return size }, err: io.EOF}).(*bufferedConn)
	read := func(bytes int) {
		t.Helper()
		for p := make([]byte, 4096); bytes > 0; {
			n, err := conn.Read(p)
			if err != nil {
				t.Fatal(err)
			}
			bytes -= n
		}
	}
	want := func(size int) {
		t.Helper()
		if len(conn.buf) != size {
			t.Errorf("the buffer has %d bytes, want %d", len(conn.buf), size)
		}
	}
	read(100_000)
	want(quietRead)
	size = 1 << 20 // all that fits
	read(1 << 20)
	want(readAhead)
	size = 1000
	read(100_000)
	want(quietRead)
}
