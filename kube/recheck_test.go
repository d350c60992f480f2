package kube

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A recheck of one replica distrusts all shared parts. It verifies them, and leaves those
// that are intact to all replicas of the client.
func TestRecheckKeepsSharing(t *testing.T) {
	mine := offline[*corev1.Pod](t, pods, SourceOptions{})
	other, err := NewSource[*corev1.Pod](mine.client, pods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	body := podList(t, protobufType, newPods(50), "9")
	read := func(s *Source[*corev1.Pod]) []*corev1.Pod {
		page, err := s.readPage(t.Context(), bodyOf(mediaProtobuf, bytes.NewReader(body)), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return page.Items
	}
	part := func(all []*corev1.Pod) *corev1.EnvVar { return &all[49].Spec.Containers[0].Env[0] }
	before, others := read(mine), read(other)
	if part(before) != part(others) {
		t.Fatal("two replicas of one client share nothing")
	}
	parts := mine.client.pool.Stats().Parts
	mine.begin(true)
	if after := mine.client.pool.Stats().Parts; after != parts {
		t.Errorf("of %d parts %d are left", parts, after)
	}
	if part(read(mine)) != part(others) || part(read(other)) != part(others) {
		t.Error("what is read after the recheck does not share with what was read before")
	}
}
