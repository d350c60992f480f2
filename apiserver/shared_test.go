package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// TestLargeEventsAreShared updates an object of a megabyte that has many watches. A frame for
// each of them would need a megabyte for each slow client.
func TestLargeEventsAreShared(t *testing.T) {
	const watches, size = 50, 1 << 20
	server := New(Options{})
	defer server.Close()
	ended := make(chan struct{})
	open := make(chan struct{})
	for range watches {
		go func() {
			defer func() { ended <- struct{}{} }()
			request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/api/v1/configmaps?watch=1&resourceVersion="+server.Version(), nil)
			response, err := server.transport().RoundTrip(request)
			open <- struct{}{}
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			if n, err := io.CopyN(io.Discard, response.Body, size); err != nil {
				t.Error(n, err)
			}
		}()
	}
	for range watches {
		<-open
	}
	object := configMapNamed("large", nil)
	object.Data["text"] = strings.Repeat("x", size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := server.Put(object); err != nil {
		t.Fatal(err)
	}
	for range watches {
		<-ended
	}
	runtime.ReadMemStats(&after)
	if allocated := (after.TotalAlloc - before.TotalAlloc) / size; allocated > watches/2 {
		t.Errorf("%d MiB were allocated for %d watches", allocated, watches)
	}
}

// TestSharedFramesAreBounded checks that a frame is shared, and that large frames are dropped.
func TestSharedFramesAreBounded(t *testing.T) {
	var s sharedFrames
	for _, size := range []int{10, 1 << 10, 1 << 20, 3 << 20, 8 << 20, 10} {
		for i := range 40 {
			of, made := sharedKey{object: &Object{key: fmt.Sprint(size, i)}}, 0
			for range 3 {
				data, err := s.get(of, func() ([]byte, error) { made++; return bytes.Repeat([]byte("x"), size), nil })
				if err != nil || len(data) != size {
					t.Fatal(len(data), err)
				}
			}
			held := 0
			for _, f := range s.frames {
				held += len(f.data)
			}
			if made != 1 || held > max(size, sharedBytes) || held != s.bytes {
				t.Fatalf("a frame of %d bytes was made %d times; %d bytes are held, and counted as %d", size, made, held, s.bytes)
			}
		}
	}
}
