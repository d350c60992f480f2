package relay

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/tarnproject/tarn/apiserver"
)

// The authorities of the cluster are read, and again a minute later; what cannot be used is
// said, and those before stay.
func TestClusterAuthorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin := apiserver.New(apiserver.Options{})
		defer origin.Close()
		var said bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&said, nil))
		if _, err := NewClusterAuthorities(t.Context(), origin.Config(), logger); err == nil || !strings.Contains(err.Error(), "extension-apiserver-authentication-reader") {
			t.Errorf("without the ConfigMap: %v", err)
		}
		publish := func(text string) {
			t.Helper()
			config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: authoritiesNamespace, Name: authoritiesName}, Data: map[string]string{authoritiesKey: text}}
			if err := origin.Put(config); err != nil {
				t.Fatal(err)
			}
		}
		publish("none")
		if _, err := NewClusterAuthorities(t.Context(), origin.Config(), logger); err == nil || !strings.Contains(err.Error(), "no certificates") {
			t.Errorf("without certificates: %v", err)
		}
		publish(authorityText(t, "first"))
		a, err := NewClusterAuthorities(t.Context(), origin.Config(), logger)
		if err != nil {
			t.Fatal(err)
		}
		first := a.Pool()
		go a.Run(t.Context())
		later := func() {
			time.Sleep(authoritiesInterval)
			synctest.Wait()
		}
		later()
		if a.Pool() != first || said.Len() > 0 {
			t.Errorf("nothing has changed, but: %s", said.String())
		}
		publish("none")
		later()
		if a.Pool() != first || !strings.Contains(said.String(), "those before stay") {
			t.Errorf("unusable authorities were used, or not reported: %s", said.String())
		}
		publish(authorityText(t, "first") + authorityText(t, "second"))
		later()
		if a.Pool().Equal(first) {
			t.Error("the new authority is not known")
		}
	})
}

func authorityText(t *testing.T, name string) string {
	t.Helper()
	text, _, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
