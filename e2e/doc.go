// Package e2e runs the real kube-apiserver, etcd, kube-controller-manager and
// kubectl on loopback, for tests that need the thing itself: what a restored
// etcd, a compacted history or a removed role really look like to a client
// cannot be learned from a fake.
//
// [Start] brings a cluster up and ties it to a test. There is no kubelet and no
// scheduler: pods come from Deployments by the controller-manager, and a
// [Kubelet] binds them and says that they run.
//
// [StartEmbedded] does the same with the server of package apiserver. Both are a
// [Server], and every scenario runs on both: what the copies saw on the real one
// is written down in testdata/observed, and each run on either is compared with
// it.
//
// `make e2e` builds the programs into the user's cache folder. With -short only the
// embedded server is used, which needs none of them.
package e2e
