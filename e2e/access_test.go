package e2e

import (
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
)

// reader is the name of the role, its binding and the account in these
// scenarios.
const reader = "reader"

// accessRemoved: a user who may not read, then may, then may not for a while.
func accessRemoved(s *testEnv) {
	s.createReaderRole()
	s.startPods(s.proxy.Through(s.server.Config(GuestToken)))
	forbidden := func(h tarn.Health) bool { return apierrors.IsForbidden(h.Err) }
	for _, subject := range s.ours() {
		subject.healthBecomes(s.T, 10*time.Second, "it is forbidden and not synced", func(h tarn.Health) bool {
			return forbidden(h) && !h.Synced
		})
	}

	guest := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: Guest}
	s.grant(guest)
	s.waitSynced()
	s.round()
	churn := s.server.StartChurn(namespace)
	s.server.WaitWrites(churn, 100)

	// The server asks only at the start of a watch.
	if err := s.server.Admin().RbacV1().RoleBindings(namespace).Delete(s.Context(), reader, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	s.refusedWith(s.server.Config(GuestToken), apierrors.IsForbidden)
	s.proxy.Cut()
	for _, subject := range s.ours() {
		subject.healthBecomes(s.T, 30*time.Second, "it is forbidden", forbidden)
	}
	s.roundUnseen()
	s.server.WaitWrites(churn, 300)
	s.roundUnseen()
	for _, subject := range s.ours() {
		h := subject.replica.Health()
		if !forbidden(h) || !h.Synced || h.Fresh(time.Hour) || subject.replica.Len() == 0 {
			s.Errorf("%s: it should keep the old copy, say that it is forbidden, and not pass for fresh; it has %d objects and says: %s",
				subject.name, subject.replica.Len(), h)
		}
	}

	s.grant(guest)
	s.follow()
	s.round()
	s.server.WaitWrites(churn, 100)
	s.settle(churn)
	s.converge(recovery)
}

// tokenRotated: a token is revoked, and some time later there is another one in
// the file that the client reads.
func tokenRotated(s *testEnv) {
	s.createReaderRole()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: reader}}
	if _, err := s.server.Admin().CoreV1().ServiceAccounts(namespace).Create(s.Context(), account, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.grant(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: reader})

	file := filepath.Join(s.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	first, second := s.server.IssueToken(namespace, reader, "first"), s.server.IssueToken(namespace, reader, "second")
	write(first)
	config := s.proxy.Through(s.server.Config(""))
	config.BearerTokenFile = file
	s.startPods(config)
	s.waitSynced()
	s.round()
	churn := s.server.StartChurn(namespace)
	s.server.WaitWrites(churn, 100)

	s.server.RevokeToken(namespace, "first")
	s.refusedWith(s.server.Config(first), apierrors.IsUnauthorized)
	s.proxy.Cut()
	for _, subject := range s.ours() {
		subject.healthBecomes(s.T, 30*time.Second, "it is unauthorized", func(h tarn.Health) bool { return apierrors.IsUnauthorized(h.Err) })
	}
	s.roundUnseen()
	s.server.WaitWrites(churn, 300)
	s.roundUnseen()

	write(second)
	s.follow()
	s.round()
	s.server.WaitWrites(churn, 100)
	s.settle(churn)
	s.converge(recovery)
}
