package relay

import (
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// A resource that is relayed in another version than the preferred one has the same selectors
// and tables as at the origin.
func TestOtherVersions(t *testing.T) {
	r := newRig(t, Options{Resources: []schema.GroupVersionResource{
		{Group: "events.k8s.io", Version: "v1", Resource: "events"},
		{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"},
		{Group: "resource.k8s.io", Version: "v1beta1", Resource: "resourceslices"},
	}})
	r.put(
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e1"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "x"}, Reason: "Started", Message: "a"},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e2"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "y"}, Reason: "Killed", Message: "b"},
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "h"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3}},
		&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s1"}, Spec: resourcev1.ResourceSliceSpec{NodeName: ptr.To("n1"), Driver: "d"}},
		&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s2"}, Spec: resourcev1.ResourceSliceSpec{NodeName: ptr.To("n2"), Driver: "d"}},
	)
	version := r.origin.Version()
	for path, want := range map[string]string{
		"/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Dx":                      "e1",
		"/apis/events.k8s.io/v1/events?fieldSelector=reason%3DKilled":                         "e2",
		"/apis/autoscaling/v1/horizontalpodautoscalers?":                                      "h",
		"/apis/resource.k8s.io/v1beta1/resourceslices?fieldSelector=spec.nodeName%3Dn1":       "s1",
		"/apis/resource.k8s.io/v1beta1/resourceslices?fieldSelector=spec.driver%3Dd&limit=10": "s2",
	} {
		path += "&resourceVersion=" + version
		for _, accept := range []string{"application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
			r.requests()
			code, body := r.read(path, "Accept", accept)
			for _, request := range r.requests() {
				proof := strings.Contains(request, "timeoutSeconds") // that the copy is new enough
				columns := strings.Contains(path, "autoscaling") || strings.Contains(path, "events")
				if !proof && (columns || accept == "application/json") {
					t.Errorf("%s as %s: the origin was asked %s", path, accept, request)
				}
			}
			wantCode, wanted := directly(t, r, path, accept)
			if code != wantCode || body != wanted || !strings.Contains(body, `"name":"`+want+`"`) {
				t.Errorf("%s as %s:\n%d %s\nwant\n%d %s", path, accept, code, body, wantCode, wanted)
			}
		}
	}
}
