package apiserver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Large answers are compressed for clients that accept it, and hold the same.
func TestCompressed(t *testing.T) {
	server := New(Options{})
	t.Cleanup(server.Close)
	fetch := func(encoding, media string) *httptest.ResponseRecorder {
		request := httptest.NewRequest(http.MethodGet, "/api/v1/configmaps", nil)
		request.Header.Set("Accept-Encoding", encoding)
		request.Header.Set("Accept", media)
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, request)
		return recorder
	}
	if small := fetch("gzip", "application/json"); small.Header().Get("Content-Encoding") != "" {
		t.Error("a small answer is compressed")
	}
	for i := range 20 {
		object := configMapNamed(fmt.Sprint("c", i), nil)
		object.Data["k"] = strings.Repeat("x", 10_000)
		if err := server.Put(object); err != nil {
			t.Fatal(err)
		}
	}
	for _, encoding := range []string{"gzip;q=0", "gzip; q=0.0, identity", "xgzip", "deflate"} {
		if got := fetch(encoding, "application/json"); got.Header().Get("Content-Encoding") != "" {
			t.Errorf("%q is answered with gzip", encoding)
		}
	}
	for _, media := range mediaTypes {
		plain, packed := fetch("", media), fetch("deflate, gzip;q=1.0", media)
		if plain.Header().Get("Content-Encoding") != "" || packed.Header().Get("Content-Encoding") != "gzip" || packed.Body.Len() > plain.Body.Len()/10 {
			t.Errorf("%s: %d bytes for all, %d for those who accept gzip", media, plain.Body.Len(), packed.Body.Len())
		}
		reader := must[*gzip.Reader](t)(gzip.NewReader(packed.Body))
		if unpacked := must[[]byte](t)(io.ReadAll(reader)); !bytes.Equal(unpacked, plain.Body.Bytes()) {
			t.Errorf("%s: compressed and uncompressed are not the same", media)
		}
	}
}
