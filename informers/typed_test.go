//go:build !tarn_client_go_0_36

package informers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
)

// TestTypedInformer uses client-go's typed wrapper of an informer.
func TestTypedInformer(t *testing.T) {
	story{
		objects: small,
		script: func(w *storyRunner) {
			typed := coreinformers.ToTypedPodInformer(w.factory.Core().V1().Pods()).TypedInformer()
			_, err := typed.AddTypedEventHandler(coreinformers.PodHandlerFuncs{
				AddFunc: func(p *corev1.Pod) { w.record("added %s", brief(p)) },
			})
			w.must(err)
			w.must(typed.AddTypedIndexers(coreinformers.PodIndexers{
				"v": func(p *corev1.Pod) ([]string, error) { return []string{p.Labels["v"]}, nil },
			}))
			w.factory.StartWithContext(w.ctx)
			w.nextSection("index")
			pods, err := typed.GetTypedIndexer().ByIndex("v", "1")
			w.must(err)
			for _, p := range pods {
				w.record("v=1: %s", brief(p))
			}
		},
		want: `
			added north/a@1
			added south/b@1
			-- index --
			v=1: north/a@1
			v=1: south/b@1`,
	}.run(t)
}
