//go:build !tarn_client_go_0_36

package informers

import "k8s.io/client-go/informers/lifecycle"

// Lifecycle is a group that client-go 0.36 does not have. With an older client-go the
// package is built with the tag tarn_client_go_0_36, and its table is generated
// again; docs/versions.md says more.
func (f *factory) Lifecycle() lifecycle.Interface { return through(f, lifecycle.New) }
