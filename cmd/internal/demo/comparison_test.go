package demo

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// A large table takes the time it takes: it is not given up as one that cannot be
// compared is.
func TestComparisonOfALargeTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server := apiserver.New(apiserver.Options{AnyNamespace: true})
		defer server.Close()
		for i := range 5000 {
			if err := server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("c-", i)}}); err != nil {
				t.Fatal(err)
			}
		}
		catalog, err := mirror.Discover(ctx, server.Config())
		if err != nil {
			t.Fatal(err)
		}
		resource, err := catalog.Find("configmaps")
		if err != nil {
			t.Fatal(err)
		}
		m, err := mirror.Start(ctx, server.Config(), []mirror.Resource{resource}, mirror.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			cancel()
			<-m.Done()
		}()
		if err := m.WaitSynced(ctx); err != nil {
			t.Fatal(err)
		}
		slow := server.Config()
		slow.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				time.Sleep(500 * time.Millisecond)
				return next.RoundTrip(r)
			})
		})
		c, err := NewComparison(m, slow)
		if err != nil {
			t.Fatal(err)
		}
		if f := c.Compare(ctx); f.Equal != 1 || f.Objects != 5000 {
			t.Errorf("%+v", f)
		}
	})
}
