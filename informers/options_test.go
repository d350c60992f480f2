package informers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestChoices tries the options that change what is seen.
func TestChoices(t *testing.T) {
	watchBoth := func(w *storyRunner) {
		w.follow(w.factory.Core().V1().Pods().Informer())
		w.follow(w.factory.Core().V1().Nodes().Informer())
		w.factory.StartWithContext(w.ctx)
		w.nextSection("10 s")
		w.wait(10*time.Second + time.Millisecond)
		w.nextSection("35 s")
		w.wait(25 * time.Second)
	}
	atFirst := `
		add n@1 (initial)
		add north/a@1 (initial)
		add south/b@1 (initial)`
	for name, s := range map[string]story{
		"namespace": {
			choices: choices{namespace: "south"},
			want: `
				add n@1 (initial)
				add south/b@1 (initial)
				-- 10 s --
				-- 35 s --`,
		},
		"tweak": {
			choices: choices{tweak: func(o *metav1.ListOptions) { o.LabelSelector = "v=2" }},
			want: `
				-- 10 s --
				-- 35 s --`,
		},
		"transform": {
			choices: choices{transform: func(o any) (any, error) {
				m := o.(metav1.Object)
				m.SetLabels(map[string]string{"v": "transformed"})
				return m, nil
			}},
			want: `
				add n@transformed (initial)
				add north/a@transformed (initial)
				add south/b@transformed (initial)
				-- 10 s --
				-- 35 s --`,
		},
		"resync by default": {
			choices: choices{resync: 30 * time.Second},
			want: atFirst + `
				-- 10 s --
				-- 35 s --
				update n@1 -> n@1
				update north/a@1 -> north/a@1
				update south/b@1 -> south/b@1`,
		},
		"resync by type": {
			choices: choices{resyncOf: map[metav1.Object]time.Duration{&corev1.Pod{}: 10 * time.Second}},
			want: atFirst + `
				-- 10 s --
				update north/a@1 -> north/a@1
				update south/b@1 -> south/b@1
				-- 35 s --
				update north/a@1 -> north/a@1
				update north/a@1 -> north/a@1
				update south/b@1 -> south/b@1
				update south/b@1 -> south/b@1`,
		},
		"no resync for one type": {
			choices: choices{resync: 30 * time.Second, resyncOf: map[metav1.Object]time.Duration{&corev1.Pod{}: 0}},
			want: atFirst + `
				-- 10 s --
				-- 35 s --
				update n@1 -> n@1`,
		},
	} {
		s.objects, s.script = small, watchBoth
		t.Run(name, s.run)
	}
}

// TestFiltered checks the constructor that no option stands for.
func TestFiltered(t *testing.T) {
	f := NewFilteredSharedInformerFactory(nil, time.Hour, "north", func(o *metav1.ListOptions) { o.Limit = 7 }).(*factory)
	if got := (recipe{tweak: f.tweak}).tweaked(metav1.ListOptions{}).Limit; f.namespace != "north" || f.resync != time.Hour || got != 7 {
		t.Errorf("namespace %q, resync %v, limit %d", f.namespace, f.resync, got)
	}
}
