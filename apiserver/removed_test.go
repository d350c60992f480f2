package apiserver

import "k8s.io/apimachinery/pkg/runtime/serializer"

var codecs = serializer.NewCodecFactory(scheme).WithoutConversion()

// removed are the versions that client-go still knows and no server still has.
var removed = map[string]bool{
	"apps/v1beta1": true, "apps/v1beta2": true, "extensions/v1beta1": true, "batch/v1beta1": true,
	"discovery.k8s.io/v1beta1": true, "events.k8s.io/v1beta1": true, "policy/v1beta1": true,
	"flowcontrol.apiserver.k8s.io/v1beta1": true, "flowcontrol.apiserver.k8s.io/v1beta2": true, "flowcontrol.apiserver.k8s.io/v1beta3": true,
	"node.k8s.io/v1alpha1": true, "node.k8s.io/v1beta1": true,
	"rbac.authorization.k8s.io/v1alpha1": true, "rbac.authorization.k8s.io/v1beta1": true,
	"storage.k8s.io/v1alpha1": true,
	// Of these, some kinds are served and others are not any more.
	"admissionregistration.k8s.io/v1alpha1": true, "admissionregistration.k8s.io/v1beta1": true,
	"certificates.k8s.io/v1beta1": true, "coordination.k8s.io/v1beta1": true, "networking.k8s.io/v1beta1": true,
	"scheduling.k8s.io/v1beta1": true, "storage.k8s.io/v1beta1": true,
}

// removedKinds are no collections: APIGroup describes the server itself, and the
// health of components is no longer asked for.
var removedKinds = []string{"APIGroup", "ComponentStatus"}
