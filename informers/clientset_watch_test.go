package informers_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	upstream "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/internal/proxytest"
)

// factoriesOf are client-go's factory and ours, over the same clientset.
var factoriesOf = map[string]func(kubernetes.Interface) upstream.SharedInformerFactory{
	"client-go": func(c kubernetes.Interface) upstream.SharedInformerFactory {
		return upstream.NewSharedInformerFactory(c, 0)
	},
	"ours": func(c kubernetes.Interface) upstream.SharedInformerFactory {
		return informers.NewSharedInformerFactory(c, 0)
	},
}

// streamed is a body that gives text, and then nothing more until its time or the context ends.
type streamed struct {
	text *strings.Reader
	end  <-chan time.Time
	ctx  context.Context
}

func (b streamed) Read(p []byte) (int, error) {
	if n, err := b.text.Read(p); err == nil {
		return n, nil
	}
	select {
	case <-b.end:
		return 0, io.EOF
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}

func (streamed) Close() error { return nil }

func answered(body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: body}
}

// late is the error of a transport that waits for an answer only for some time.
type late struct{}

func (late) Error() string   { return "net/http: timeout awaiting response headers" }
func (late) Timeout() bool   { return true }
func (late) Temporary() bool { return true }

// While a server restarts behind a load balancer, requests are lost. That costs another watch,
// and not a read of the whole state, by each informer of each program.
func TestClientsetWhoseWatchesAreLost(t *testing.T) {
	const initial = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"3"}}}
{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}
`
	const news = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","namespace":"n","uid":"v","resourceVersion":"6"}}}
`
	for name, lost := range map[string]error{
		"reset": syscall.ECONNRESET, "closed": io.EOF, "late": late{},
		"GOAWAY": errors.New("http2: server sent GOAWAY and closed the connection"),
	} {
		for of, make := range factoriesOf {
			t.Run(name+" "+of, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var reads, watches atomic.Int32
					client, _ := clientset(t, &rest.Config{Host: "http://lake"}, func(c *rest.Config) {
						c.Transport = proxytest.Transport(func(req *http.Request) (*http.Response, error) {
							text, lasts := news, time.Hour
							switch query := req.URL.Query(); {
							case query.Get("watch") == "" || query.Get("sendInitialEvents") != "":
								reads.Add(1)
								text, lasts = initial, 2*time.Second
							case watches.Add(1) < 4:
								return nil, lost
							}
							return answered(streamed{strings.NewReader(text), time.After(lasts), req.Context()}), nil
						})
					})
					factory := make(client)
					pods := factory.Core().V1().Pods().Informer()
					// The handler of the process measures its pauses in real time.
					if err := pods.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					factory.StartWithContext(ctx)
					time.Sleep(time.Minute)
					if got := pods.GetStore().ListKeys(); len(got) != 2 || reads.Load() != 1 || watches.Load() != 4 {
						t.Errorf("the informer holds %q after %d reads of the whole state and %d watches, wanted 1 and 4", got, reads.Load(), watches.Load())
					}
					cancel()
					factory.Shutdown()
				})
			})
		}
	}
}
