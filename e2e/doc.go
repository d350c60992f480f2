// Package e2e runs the real kube-apiserver, etcd, kube-controller-manager and
// kubectl on loopback, for tests that need the thing itself: what a restored
// etcd, a compacted history or a removed role really look like to a client
// cannot be learned from a fake.
//
// [Start] brings a cluster up and ties it to a test. There is no kubelet and no
// scheduler: pods come from Deployments by the controller-manager, and a
// [Kubelet] binds them and says that they run.
//
// The programs are built by `make e2e` into the folder bin.
package e2e
