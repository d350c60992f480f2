package e2e

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IssueToken returns a token of the account that is good as long as a secret of
// that name is there: deleting the secret is how it is revoked.
func (c *Cluster) IssueToken(namespace, account, name string) string {
	c.t.Helper()
	secret, err := c.admin.CoreV1().Secrets(namespace).Create(c.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: name, UID: secret.UID},
	}}
	issued, err := c.admin.CoreV1().ServiceAccounts(namespace).CreateToken(c.t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return issued.Status.Token
}

// RevokeToken makes a token worthless, once the server has forgotten that it was
// good.
func (c *Cluster) RevokeToken(namespace, name string) {
	c.t.Helper()
	if err := c.admin.CoreV1().Secrets(namespace).Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}
