package faults_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/faults"
)

// responseBody is what servers send here.
var responseBody = bytes.Repeat([]byte("0123456789"), 100)

// startServer starts a server on loopback that answers everything with speech, and
// returns a client whose transport always has one fault.
func startServer(t *testing.T, kind faults.Kind, limits faults.Limits) (*faults.Plan, *http.Client, string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(responseBody) }))
	t.Cleanup(server.Close)
	plan := faults.New(1, faults.Mix{kind: 1}).Within(limits)
	client := &http.Client{Transport: faults.Transport(&http.Transport{}, plan, faults.TransportOptions{
		Status: func(code int) (string, []byte) {
			return "application/json", fmt.Appendf(nil, `{"kind":"Status","code":%d}`, code)
		},
	})}
	t.Cleanup(client.CloseIdleConnections)
	return plan, client, server.URL
}

func get(t *testing.T, client *http.Client, url string) (*http.Response, []byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, body, err
}

func TestTransportAnswers(t *testing.T) {
	for kind, want := range map[faults.Kind]struct {
		codes string
		after bool
	}{
		faults.Busy:     {codes: "429"},
		faults.BusyFor:  {codes: "429", after: true},
		faults.Internal: {codes: "500"},
		faults.Fail:     {codes: "502 503 504"},
		faults.Expire:   {codes: "410"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			plan, client, url := startServer(t, kind, faults.Limits{})
			for range 5 {
				response, body, err := get(t, client, url)
				if err != nil {
					t.Fatal(err)
				}
				code := fmt.Sprint(response.StatusCode)
				if !strings.Contains(want.codes, code) || string(body) != `{"kind":"Status","code":`+code+`}` ||
					response.Header.Get("Content-Type") != "application/json" || !strings.HasPrefix(response.Status, code+" ") {
					t.Errorf("the answer is %s, %v, %q", response.Status, response.Header, body)
				}
				after := response.Header.Get("Retry-After")
				if (after != "") != want.after || after == "0" {
					t.Errorf("Retry-After is %q", after)
				}
			}
			if n := plan.History().Counts()[kind]; n != 5 {
				t.Errorf("happened %d times:\n%s", n, plan.History())
			}
		})
	}
}

func TestTransportRefuses(t *testing.T) {
	plan, client, url := startServer(t, faults.Refuse, faults.Limits{})
	sent := &closeable{Reader: strings.NewReader("hello")}
	_, err := client.Post(url, "text/plain", sent)
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.Is(err, faults.ErrInjected) {
		t.Errorf("the answer is %v", err)
	}
	if !sent.closed.Load() {
		t.Error("the body of the request was not closed")
	}
	if h := plan.History(); len(h) != 1 || h[0].Of != "POST /" || h[0].Stream != "http" {
		t.Errorf("the history is\n%s", h)
	}
}

type closeable struct {
	io.Reader
	closed atomic.Bool
}

func (c *closeable) Close() error {
	c.closed.Store(true)
	return nil
}

func TestBodyFaults(t *testing.T) {
	for kind, check := range map[faults.Kind]func(t *testing.T, body []byte, err error){
		faults.Reset: func(t *testing.T, body []byte, err error) {
			if !errors.Is(err, syscall.ECONNRESET) || len(body) > 100 || !bytes.HasPrefix(responseBody, body) {
				t.Errorf("got %q, %v", body, err)
			}
		},
		faults.Truncate: func(t *testing.T, body []byte, err error) {
			if err != nil || len(body) > 100 || !bytes.HasPrefix(responseBody, body) {
				t.Errorf("got %q, %v", body, err)
			}
		},
		faults.Garble: func(t *testing.T, body []byte, err error) {
			if err != nil || len(body) != len(responseBody) || bytes.Equal(body, responseBody) {
				t.Errorf("got %q, %v", body, err)
			}
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			plan, client, url := startServer(t, kind, faults.Limits{Bytes: 100})
			lengths := map[int]bool{}
			for range 20 {
				response, body, err := get(t, client, url)
				if response == nil {
					t.Fatal(err)
				}
				check(t, body, err)
				lengths[len(body)] = true
				if kind == faults.Truncate && response.ContentLength >= 0 {
					t.Errorf("the length is given as %d", response.ContentLength)
				}
			}
			if kind != faults.Garble && len(lengths) < 5 {
				t.Errorf("it always happens at the same place: %v", lengths)
			}
			if n := plan.History().Counts()[kind]; n != 20 {
				t.Errorf("happened %d times:\n%s", n, plan.History())
			}
		})
	}
}

// A byte is changed by where it is, not by how it is read.
func TestGarbleIsTheSameInAnyPortion(t *testing.T) {
	read := func(portion int) []byte {
		transport := faults.Transport(memoryTransport{}, faults.New(1, faults.Mix{faults.Garble: 1}).Within(faults.Limits{Bytes: 50}), faults.TransportOptions{})
		response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var all []byte
		buf := make([]byte, portion)
		for {
			n, err := response.Body.Read(buf)
			all = append(all, buf[:n]...)
			if err != nil {
				return all
			}
		}
	}
	if whole := read(1000); !bytes.Equal(whole, read(1)) || !bytes.Equal(whole, read(7)) || bytes.Equal(whole, responseBody) {
		t.Errorf("in portions it is read as\n%s\n%s\n%s", whole, read(1), read(7))
	}
}

// memoryTransport answers with speech, without a network.
type memoryTransport struct{}

func (memoryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(responseBody)), Request: req}, nil
}

// What holds a request up ends with its context, or when the body is closed.
func TestTransportWaits(t *testing.T) {
	why := errors.New("why")
	ask := func(ctx context.Context, kind faults.Kind) (*http.Response, error) {
		transport := faults.Transport(memoryTransport{}, faults.New(1, faults.Mix{kind: 1}), faults.TransportOptions{})
		return transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	}
	lifetime := func(t *testing.T, d time.Duration) context.Context {
		ctx, cancel := context.WithTimeoutCause(t.Context(), d, why)
		t.Cleanup(cancel)
		return ctx
	}
	for name, test := range map[string]struct {
		run  func(t *testing.T) error
		want error
		took time.Duration
	}{
		"hang": {want: why, took: time.Hour, run: func(t *testing.T) error {
			_, err := ask(lifetime(t, time.Hour), faults.Hang)
			return err
		}},
		"delay": {want: why, took: time.Microsecond, run: func(t *testing.T) error {
			_, err := ask(lifetime(t, time.Microsecond), faults.Delay)
			return err
		}},
		"stall": {want: why, took: time.Hour, run: func(t *testing.T) error {
			response, err := ask(lifetime(t, time.Hour), faults.Stall)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if !bytes.HasPrefix(responseBody, body) || len(body) == len(responseBody) {
				t.Errorf("before it stalled there were %d bytes", len(body))
			}
			return err
		}},
		"stall, closed": {want: http.ErrBodyReadAfterClose, took: time.Minute, run: func(t *testing.T) error {
			response, err := ask(t.Context(), faults.Stall)
			if err != nil {
				return err
			}
			time.AfterFunc(time.Minute, func() { response.Body.Close() })
			_, err = io.ReadAll(response.Body)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := test.run(t)
				if took := time.Since(start); !errors.Is(err, test.want) || took != test.took {
					t.Errorf("ended with %v after %s, want %v after %s", err, took, test.want, test.took)
				}
			})
		})
	}
}

// A day that has ended, or ends in the middle of a body, leaves the rest alone.
func TestBodyAfterTheDay(t *testing.T) {
	for _, kind := range []faults.Kind{faults.Reset, faults.Stall, faults.Truncate, faults.Garble} {
		t.Run(string(kind), func(t *testing.T) {
			plan := faults.New(1, faults.Mix{kind: 1}).Within(faults.Limits{Bytes: 10})
			response, err := faults.Transport(memoryTransport{}, plan, faults.TransportOptions{}).RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			begin := 0
			if kind == faults.Garble {
				begin, err = io.ReadFull(response.Body, make([]byte, 100))
				if err != nil || len(plan.History()) != 1 {
					t.Fatalf("after %d bytes: %v\n%s", begin, err, plan.History())
				}
			}
			plan.End()
			rest, err := io.ReadAll(response.Body)
			if err != nil || !bytes.Equal(rest, responseBody[begin:]) {
				t.Errorf("the rest is %q, %v", rest, err)
			}
		})
	}
}

func TestPlainStatus(t *testing.T) {
	plan := faults.New(1, faults.Mix{faults.Expire: 1})
	response, err := faults.Transport(memoryTransport{}, plan, faults.TransportOptions{}).RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "Gone\n" || response.ContentLength != 5 {
		t.Errorf("the body is %q of %d bytes, %v", body, response.ContentLength, err)
	}
}
