//go:build !tarn_client_go_0_36

package apiserver

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// fieldsSince037 are those of types that k8s.io/api 0.36 does not have.
func fieldsSince037(object runtime.Object) map[string]string {
	switch o := object.(type) {
	case *certificatesv1.ClusterTrustBundle:
		return map[string]string{"spec.signerName": o.Spec.SignerName}
	case *certificatesv1.PodCertificateRequest:
		return map[string]string{"spec.signerName": o.Spec.SignerName, "spec.podName": o.Spec.PodName, "spec.nodeName": string(o.Spec.NodeName)}
	}
	return nil
}
