//go:build !tarn_client_go_0_36

package apiserver

import (
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// A kubelet may watch the certificate requests of the pods of its node only, in both versions.
func TestFieldsOfPodCertificateRequests(t *testing.T) {
	inBubble(t, Options{AnyNamespace: true}, func(t *testing.T, server *Server) {
		for _, node := range []string{"a", "b"} {
			request := &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: "of-" + node}}
			request.Spec.NodeName, request.Spec.PodName, request.Spec.SignerName = types.NodeName(node), "pod-"+node, "example.com/signer"
			if err := server.Put(request); err != nil {
				t.Fatal(err)
			}
		}
		client := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(server.Config()))
		for _, selector := range []string{"spec.nodeName=b", "spec.podName=pod-b", "spec.signerName=example.com/signer,metadata.name=of-b"} {
			options := metav1.ListOptions{FieldSelector: selector}
			if list, err := client.CertificatesV1().PodCertificateRequests("").List(t.Context(), options); err != nil || len(list.Items) != 1 || list.Items[0].Name != "of-b" {
				t.Errorf("%s: %v, %v", selector, list, err)
			}
			if list, err := client.CertificatesV1beta1().PodCertificateRequests("").List(t.Context(), options); err != nil || len(list.Items) != 1 || list.Items[0].Name != "of-b" {
				t.Errorf("%s, v1beta1: %v, %v", selector, list, err)
			}
		}
	})
}
