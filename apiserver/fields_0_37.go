//go:build !tarn_client_go_0_36

package apiserver

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// fieldsSince037 are those of types that k8s.io/api 0.36 does not have.
func fieldsSince037(object runtime.Object) map[string]string {
	if o, ok := object.(*certificatesv1.ClusterTrustBundle); ok {
		return map[string]string{"spec.signerName": o.Spec.SignerName}
	}
	return nil
}
