package e2e

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// selectedByLabels: pods that are painted another colour leave a selection or
// enter it, which must look like a delete or an add.
func selectedByLabels(s *testEnv) {
	s.selected(selection{namespace: namespace, labels: "colour!=blue,app!=bare"}, func(name string, i int) error {
		return s.patch(name, fmt.Sprintf(`{"metadata":{"labels":{"colour":"%s"}}}`, []string{"red", "green", "blue"}[i%3]))
	})
}

// selectedByFields: pods leave the selection of what runs when they fail.
func selectedByFields(s *testEnv) {
	s.selected(selection{namespace: namespace, fields: "status.phase=Running,spec.nodeName!=node-3"}, func(name string, i int) error {
		if i%5 != 0 {
			return nil
		}
		return s.patch(name, `{"status":{"phase":"Failed"}}`, "status")
	})
}

// selected watches a selection while pods enter and leave it.
func (s *testEnv) selected(which selection, touch func(pod string, i int) error) {
	s.start(podKinds(which), s.server.Config(AdminToken), truthOfPods(s.server.Admin(), which))
	s.waitSynced()
	s.converge(promptly)
	for range 5 {
		s.round()
	}

	churn := s.server.StartChurn(namespace)
	pods, err := s.server.Admin().CoreV1().Pods(namespace).List(s.Context(), metav1.ListOptions{LabelSelector: "app=app-0"})
	if err != nil {
		s.Fatal(err)
	}
	touched := 0
	for i, pod := range pods.Items {
		// The churn may have deleted it meanwhile.
		if err := touch(pod.Name, i); err == nil {
			touched++
		}
	}
	if touched == 0 {
		s.Error("no pod could be changed: this shows nothing")
	}
	s.server.WaitWrites(churn, 300)
	s.settle(churn)
	s.converge(promptly)
	for _, subject := range s.subjects {
		if subject.mirror.deletes == 0 || subject.mirror.adds == 0 {
			s.Errorf("%s: nothing left or entered the selection: %v", subject.name, subject.mirror)
		}
	}
}

func (s *testEnv) patch(pod, patch string, subresources ...string) error {
	_, err := s.server.Admin().CoreV1().Pods(namespace).Patch(s.Context(), pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
}
