package e2e

import (
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// createReaderRole makes a role that may read pods.
func (s *stage) createReaderRole() {
	s.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}},
	}
	if _, err := s.cluster.Admin().RbacV1().Roles(namespace).Create(s.Context(), role, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// grant gives the role to someone.
func (s *stage) grant(to rbacv1.Subject) {
	s.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: reader},
		Subjects:   []rbacv1.Subject{to},
	}
	if _, err := s.cluster.Admin().RbacV1().RoleBindings(namespace).Create(s.Context(), binding, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// issueToken returns a token of the account that is good as long as a secret of
// that name is there: deleting the secret is how it is revoked.
func (s *stage) issueToken(name string) string {
	s.Helper()
	secret, err := s.cluster.Admin().CoreV1().Secrets(namespace).Create(s.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: name, UID: secret.UID},
	}}
	issued, err := s.cluster.Admin().CoreV1().ServiceAccounts(namespace).CreateToken(s.Context(), reader, request, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return issued.Status.Token
}

// refusedWith waits until the server refuses a client: it remembers what it
// decided before for some seconds.
func (s *stage) refusedWith(config *rest.Config, expected func(error) bool) {
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
