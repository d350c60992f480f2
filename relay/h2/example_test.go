package h2_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/tarnproject/tarn/relay/h2"
)

// A server whose answers last, such as one with a relay as its handler.
func ExampleConfigure() {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "asked by", r.Proto)
	}))
	server.EnableHTTP2 = true
	h2.Configure(server.Config)
	server.StartTLS()
	defer server.Close()

	answer, err := server.Client().Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	fmt.Print(string(text))
	// Output: asked by HTTP/2.0
}
