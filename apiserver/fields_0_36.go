//go:build tarn_client_go_0_36

package apiserver

import "k8s.io/apimachinery/pkg/runtime"

// fieldsSince037 are those of types that k8s.io/api 0.36 does not have.
func fieldsSince037(runtime.Object) map[string]string { return nil }
