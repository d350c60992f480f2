package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Scripted pods change in the same way on every server, while the churn
// changes other pods at random. Each round creates one, changes the existing
// ones, and deletes those that were created three rounds before. So the events of
// scripted pods can be compared between servers.

// scriptedRounds is the number of rounds in which a scripted pod exists.
const scriptedRounds = 3

// round makes the next round, and waits until every copy has it. So one round is
// one step in every copy.
func (s *testEnv) round() {
	s.Helper()
	s.roundUnseen()
	s.follow()
}

// follow waits until every copy has the scripted pods as they are.
func (s *testEnv) follow() {
	s.Helper()
	for _, subject := range s.subjects {
		if !subject.ours && s.peersLost {
			continue
		}
		if err := eventually(s.T, recovery, func() error { return s.followed(subject) }); err != nil {
			s.Fatalf("%s has not followed round %d: %v", subject.name, s.rounds, err)
		}
	}
}

// roundUnseen makes the next round without waiting for the copies. If the server is
// down, it waits for the server.
func (s *testEnv) roundUnseen() {
	s.Helper()
	s.rounds++
	pods := s.server.Admin().CoreV1().Pods(namespace)
	var there []corev1.Pod
	s.retry(promptly, func(ctx context.Context) error {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=" + scripted})
		if err == nil {
			there = list.Items
		}
		return err
	})
	change := fmt.Appendf(nil, `{"metadata":{"labels":{"round":"%d","colour":%q}}}`, s.rounds, colourOf(s.rounds))
	for _, pod := range there {
		s.retry(promptly, func(ctx context.Context) error {
			if roundOf(pod.Name) > s.rounds-scriptedRounds {
				_, err := pods.Patch(ctx, pod.Name, types.MergePatchType, change, metav1.PatchOptions{})
				return err
			}
			err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
			if apierrors.IsNotFound(err) {
				return nil // the answer to the attempt before was lost
			}
			return err
		})
	}
	born := podOf(scripted, fmt.Sprintf("%s-%d", scripted, s.rounds))
	born.Labels["round"], born.Labels["colour"] = strconv.Itoa(s.rounds), colourOf(s.rounds)
	born.Spec.NodeName = nodeName(1 + s.rounds%2*2) // node-3 or node-1
	s.retry(promptly, func(ctx context.Context) error {
		_, err := pods.Create(ctx, born, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	s.retry(promptly, func(ctx context.Context) error {
		pod, err := pods.Get(ctx, born.Name, metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("%s is %s", pod.Name, pod.Status.Phase)
		}
		return err
	})
}

func colourOf(round int) string { return []string{"red", "green", "blue"}[round%3] }

func roundOf(name string) int {
	round, _ := strconv.Atoi(strings.TrimPrefix(name, scripted+"-"))
	return round
}

// followed checks that the handler of a copy has the current state of the scripted pods.
func (s *testEnv) followed(subject *subject) error {
	all, err := s.truth(s.Context())
	if err != nil {
		return err
	}
	scriptedOnly := func(objects map[string]metav1.Object) map[string]metav1.Object {
		some := map[string]metav1.Object{}
		for key, object := range objects {
			if object.GetLabels()["app"] == scripted {
				some[key] = object
			}
		}
		return some
	}
	same := func(a, b metav1.Object) bool { return describe(a) == describe(b) }
	found := differences(scriptedOnly(all), scriptedOnly(subject.mirror.objectsSeen()), same)
	if len(found) > 0 {
		return fmt.Errorf("the handler %s", strings.Join(found, ", "))
	}
	return nil
}

// mark identifies the state of a scripted pod, or of a custom resource, on every server;
// it is empty for other objects.
func mark(object metav1.Object) string {
	if custom, ok := object.(*unstructured.Unstructured); ok {
		size, _, _ := unstructured.NestedString(custom.Object, "spec", "size")
		return size
	}
	return object.GetLabels()["round"]
}
