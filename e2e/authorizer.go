package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn/apiserver"
)

// authorizer is a handler in front of the embedded server, which allows everything
// to every user with a token. It refuses requests that are not granted: all users
// but the administrator need a RoleBinding in the namespace.
//
// It does not check what a binding grants: scenarios grant and revoke one role,
// and test clients, not RBAC.
type authorizer struct {
	api   *apiserver.Server
	admin kubernetes.Interface

	mu     sync.Mutex
	issued map[string]tokenOwner // by the name of the token
}

// tokenOwner is the owner of a token.
type tokenOwner struct {
	token   string
	subject rbacv1.Subject
}

func newAuthorizer(t testing.TB, api *apiserver.Server) *authorizer {
	t.Helper()
	admin, err := kubernetes.NewForConfig(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	guest := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: Guest}
	return &authorizer{api: api, admin: admin, issued: map[string]tokenOwner{Guest: {GuestToken, guest}}}
}

func (d *authorizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if who, known := d.ownerOfToken(r); known && !d.granted(r, who) {
		refuse(w, r, who)
		return
	}
	d.api.ServeHTTP(w, r)
}

func (d *authorizer) ownerOfToken(r *http.Request) (rbacv1.Subject, bool) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.issued {
		if h.token == token {
			return h.subject, true
		}
	}
	return rbacv1.Subject{}, false
}

func (d *authorizer) granted(r *http.Request, who rbacv1.Subject) bool {
	_, path, found := strings.Cut(r.URL.Path, "/namespaces/")
	namespace, _, _ := strings.Cut(path, "/")
	if !found {
		return false
	}
	bindings, err := d.admin.RbacV1().RoleBindings(namespace).List(r.Context(), metav1.ListOptions{})
	return err == nil && slices.ContainsFunc(bindings.Items, func(b rbacv1.RoleBinding) bool { return slices.Contains(b.Subjects, who) })
}

func refuse(w http.ResponseWriter, r *http.Request, who rbacv1.Subject) {
	parts := strings.Split(r.URL.Path, "/")
	err := apierrors.NewForbidden(schema.GroupResource{Resource: parts[len(parts)-1]}, "", fmt.Errorf("%s %q cannot do that here", who.Kind, who.Name))
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(status) // or the client has gone
}

func (d *authorizer) issue(namespace, account, name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	token := name + "-token"
	d.issued[name] = tokenOwner{token, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
	d.applyTokens()
	return token
}

func (d *authorizer) revoke(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.issued, name)
	d.applyTokens()
}

// applyTokens makes the server accept the tokens of all holders, and no others.
func (d *authorizer) applyTokens() {
	tokens := []string{AdminToken}
	for _, name := range slices.Sorted(maps.Keys(d.issued)) {
		tokens = append(tokens, d.issued[name].token)
	}
	d.api.SetTokens(tokens...)
}
