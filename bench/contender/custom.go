package contender

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	upstream "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn/bench/replay"
)

// CustomPod is a custom resource's Go type as their authors write them, with the
// content of a pod. It has no protobuf form.
type CustomPod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              corev1.PodSpec   `json:"spec,omitempty"`
	Status            corev1.PodStatus `json:"status,omitempty"`
}

// CustomPodList is a list of them.
type CustomPodList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CustomPod `json:"items"`
}

func (p *CustomPod) DeepCopyObject() runtime.Object {
	c := &CustomPod{TypeMeta: p.TypeMeta}
	p.deepCopyInto(c)
	return c
}

func (p *CustomPod) deepCopyInto(c *CustomPod) {
	c.TypeMeta = p.TypeMeta
	p.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	p.Spec.DeepCopyInto(&c.Spec)
	p.Status.DeepCopyInto(&c.Status)
}

func (l *CustomPodList) DeepCopyObject() runtime.Object {
	c := &CustomPodList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	c.Items = make([]CustomPod, len(l.Items))
	for i := range l.Items {
		l.Items[i].deepCopyInto(&c.Items[i])
	}
	return c
}

var (
	customVersion  = schema.GroupVersion{Group: replay.CustomGroup, Version: replay.CustomVersion}
	customResource = customVersion.WithResource("pods")
)

// customScheme knows the custom resource, and what every client needs.
func customScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(customVersion.WithKind("Pod"), &CustomPod{})
	scheme.AddKnownTypeWithName(customVersion.WithKind("PodList"), &CustomPodList{})
	metav1.AddToGroupVersion(scheme, customVersion)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}

// customListWatch is client-go's source of the custom resource, by the client
// that its code generator makes.
func customListWatch(c *rest.Config) (upstream.ListerWatcher, error) {
	scheme := customScheme()
	c = rest.CopyConfig(c)
	c.APIPath, c.GroupVersion = "/apis", &customVersion
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, err
	}
	pods := gentype.NewClientWithList(
		"pods", client, runtime.NewParameterCodec(scheme), metav1.NamespaceAll,
		func() *CustomPod { return &CustomPod{} }, func() *CustomPodList { return &CustomPodList{} },
	)
	return listWatch(client, pods.List, pods.Watch), nil
}
