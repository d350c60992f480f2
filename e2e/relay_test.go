package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/kube"
)

// Clients of a relay are treated as clients of the server are: by selections, and on
// connections that are cut.
func TestRelayClients(t *testing.T) {
	for _, scenario := range scenarios {
		if !slices.Contains([]string{"selected by labels", "selected by fields", "connections cut"}, scenario.name) {
			continue
		}
		t.Run(scenario.name, func(t *testing.T) {
			onOne(t, scenario.pods, func(s *testEnv) {
				s.throughRelay(s.server.Config(AdminToken))
				scenario.play(s)
			})
		})
	}
}

// throughRelay puts a relay between the copies and the server.
func (s *testEnv) throughRelay(origin *rest.Config) {
	s.server = relayed(s.T, s.server, origin)
	s.proxy = s.server.Proxy()
}

// informersOfRelays is how many informers lose their relay at once.
const informersOfRelays = 200

// A relay dies under 200 informers, half of them client-go's. All resume at the other one
// from the version that they have: nobody lists.
func TestRelayKilled(t *testing.T) {
	onEachInTurn(t, 100, func(s *testEnv) {
		first, second := startRelay(s.T, s.server.Config(AdminToken)), startRelay(s.T, s.server.Config(AdminToken))
		config, err := kube.Endpoints(first.Config(AdminToken), second.Config(AdminToken))
		if err != nil {
			s.Fatal(err)
		}
		all := selection{namespace: namespace}
		kinds := podKinds(all)
		for i := range informersOfRelays {
			s.start([]kind{kinds[[]int{0, 1, 2, 5}[i%4]]}, config, truthOfPods(s.server.Admin(), all))
		}
		s.waitSynced()
		churn := s.server.StartChurn(namespace)
		s.server.WaitWrites(churn, 100)
		asked := s.asked()
		first.kill()
		s.server.WaitWrites(churn, 100)
		s.settle(churn)

		began := time.Now()
		// It takes about a second; the machine may be small.
		if err := eventually(s.T, promptly, s.allEqual); err != nil {
			s.Errorf("not equal after %v: %v", promptly, err)
		}
		s.Logf("%d informers are found equal %v after the last write", len(s.subjects), time.Since(began).Round(time.Millisecond))
		s.nobodyListed(asked)
	})
}

// allEqual compares all copies with one list.
func (s *testEnv) allEqual() error {
	want, err := s.truth(s.Context())
	if err != nil {
		return err
	}
	for _, subject := range s.subjects {
		if found := differences(want, subject.live.contents(), sameContent); len(found) > 0 {
			return fmt.Errorf("%s: %s", subject.name, found[0])
		}
	}
	return nil
}

// A watch that is open at a relay ends when its caller may no longer read, without anybody
// cutting it: the right was taken away, or the token was revoked.
func TestRelayEndsWatchesWithoutRights(t *testing.T) {
	onReal(t, 5, func(s *testEnv) {
		relayed := startRelay(s.T, s.server.Config(AdminToken))
		s.createReaderRole()
		s.grant(rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: Guest})
		byRight := s.openWatch(relayed.Config(GuestToken))
		if err := s.server.Admin().RbacV1().RoleBindings(namespace).Delete(s.Context(), reader, metav1.DeleteOptions{}); err != nil {
			s.Fatal(err)
		}
		byRight("the right was taken away")

		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: reader}}
		if _, err := s.server.Admin().CoreV1().ServiceAccounts(namespace).Create(s.Context(), account, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
		s.grant(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: reader})
		byToken := s.openWatch(relayed.Config(s.server.IssueToken(namespace, reader, "only")))
		s.server.RevokeToken(namespace, "only")
		byToken("the token was revoked")
	})
}

// openWatch opens a watch of the pods, and returns what waits for its end.
func (s *testEnv) openWatch(config *rest.Config) (ends func(why string)) {
	s.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	// Rights that were just given take a moment to be known.
	var list *corev1.PodList
	s.retry(time.Minute, func(ctx context.Context) (err error) {
		list, err = client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		return err
	})
	w, err := client.CoreV1().Pods(namespace).Watch(s.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(w.Stop)
	return func(why string) {
		s.Helper()
		began := time.Now()
		timeout := time.NewTimer(2 * time.Minute)
		defer timeout.Stop()
		for {
			select {
			case _, open := <-w.ResultChan():
				if !open {
					s.Logf("%s: the watch ended after %v", why, time.Since(began).Round(time.Second))
					return
				}
			case <-timeout.C:
				s.Errorf("%s: the watch is still open after two minutes", why)
				return
			}
		}
	}
}
