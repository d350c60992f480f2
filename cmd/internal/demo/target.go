package demo

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"

	"github.com/tarnproject/tarn/apiserver"
)

// Object is anything that the workload writes.
type Object interface {
	metav1.Object
	runtime.Object
}

// A Target is the cluster that a workload writes to.
type Target interface {
	// Put creates or replaces an object, status included. It does not keep the
	// object.
	Put(object Object) error
	// Delete removes an object, or marks it as deleted if it has finalizers. It is
	// not an error if the object does not exist.
	Delete(object Object) error
	// UID is the UID that the cluster gave to an object.
	UID(ctx context.Context, object Object) (types.UID, error)
}

// On returns a target that writes to an API server.
func On(server *apiserver.Server) (Target, error) {
	client, err := metadata.NewForConfig(server.Config())
	if err != nil {
		return nil, err
	}
	return onServer{server: server, client: client}, nil
}

type onServer struct {
	server *apiserver.Server
	client metadata.Interface
}

func (t onServer) Put(object Object) error { return t.server.Put(object) }

func (t onServer) Delete(object Object) error {
	if err := t.server.Delete(object); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

func (t onServer) UID(ctx context.Context, object Object) (types.UID, error) {
	kind := object.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		if err != nil {
			return "", err
		}
		kind = kinds[0]
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	found, err := t.client.Resource(resource).Namespace(object.GetNamespace()).Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read what was just written: %w", err)
	}
	return found.UID, nil
}

// ownedBy refers to the controller that an object belongs to.
func ownedBy(owner Object, apiVersion, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}
}

var appsVersion = appsv1.SchemeGroupVersion.String()
