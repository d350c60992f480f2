package e2e

import (
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// createReaderRole makes a role that may read pods.
func (s *testEnv) createReaderRole() {
	s.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}},
	}
	if _, err := s.server.Admin().RbacV1().Roles(namespace).Create(s.Context(), role, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// grant gives the role to someone.
func (s *testEnv) grant(to rbacv1.Subject) {
	s.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: reader},
		Subjects:   []rbacv1.Subject{to},
	}
	if _, err := s.server.Admin().RbacV1().RoleBindings(namespace).Create(s.Context(), binding, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// refusedWith waits until the server refuses a client: it remembers what it
// decided before for some seconds.
func (s *testEnv) refusedWith(config *rest.Config, expected func(error) bool) {
	s.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	err = eventually(s.T, 30*time.Second, func() error {
		_, err := client.CoreV1().Pods(namespace).List(s.Context(), metav1.ListOptions{Limit: 1})
		switch {
		case err == nil:
			return errors.New("it may still read")
		case !expected(err):
			return fmt.Errorf("refused for another reason: %w", err)
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}
