package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cache"
)

// What the scenarios rely on to find a bug must find one when there is one.

func pod(name, version, uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, UID: types.UID(uid)}}
}

func TestMirrorFindsBrokenOrder(t *testing.T) {
	a1, a2 := pod("a", "1", "u"), pod("a", "2", "u")
	for _, test := range []struct {
		name  string
		steps func(*mirror)
		want  string // "" if all is well
	}{
		{"a life", func(m *mirror) { m.OnAdd(a1, true); m.OnUpdate(a1, a2); m.OnDelete(a2) }, ""},
		{"a delete found by relist", func(m *mirror) {
			m.OnAdd(a1, true)
			m.OnDelete(cache.DeletedFinalStateUnknown{Key: "a", Obj: a1})
		}, ""},
		{"added twice", func(m *mirror) { m.OnAdd(a1, true); m.OnAdd(a2, false) }, "a key that was there"},
		{"updated before added", func(m *mirror) { m.OnUpdate(a1, a2) }, "a key that was not there"},
		{"updated from a state that was never delivered", func(m *mirror) { m.OnAdd(a1, true); m.OnUpdate(a2, a2) }, "but the last event said"},
		{"deleted twice", func(m *mirror) { m.OnAdd(a1, true); m.OnDelete(a1); m.OnDelete(a1) }, "a key that was not there"},
		{"deleted without a state", func(m *mirror) { m.OnDelete(cache.DeletedFinalStateUnknown{Key: "a"}) }, "delete of a <nil>"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMirror()
			test.steps(m)
			checkComplaint(t, m.complaints(), test.want)
		})
	}
}

func TestMirrorNotesSteps(t *testing.T) {
	at := func(version, round string) *corev1.Pod {
		p := pod("a", version, "u")
		p.Labels = map[string]string{"round": round}
		return p
	}
	m := newMirror()
	m.OnAdd(at("1", "1"), true)
	m.OnUpdate(at("1", "1"), at("2", "1")) // what the kubelet does is no step
	m.OnUpdate(at("2", "1"), at("3", "2"))
	m.OnDelete(at("4", "2"))
	m.OnAdd(pod("other", "5", "v"), false)
	if got := fmt.Sprint(m.allSteps()); got != "map[a:[add@1 update@2 delete@2]]" {
		t.Errorf("noted %s", got)
	}
}

func TestReasonsAreNoted(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	f := &failures{}
	for _, err := range []error{
		apierrors.NewUnauthorized("no"), apierrors.NewForbidden(pods, "", nil), apierrors.NewForbidden(pods, "", nil),
		fmt.Errorf("watch: %w", apierrors.NewResourceExpired("old")), apierrors.NewNotFound(pods, ""),
		fmt.Errorf("it %w", tarn.ErrRewound), fmt.Errorf("it %w", tarn.ErrSilent), errors.New("connection refused"),
	} {
		f.note(t.Context(), nil, err)
	}
	if got := strings.Join(f.reasons(), " "); got != "expired forbidden not-found silent unauthorized went-back" {
		t.Errorf("noted %s", got)
	}
}

func TestVolatileFieldsAreLeftOut(t *testing.T) {
	one, other := pod("a", "1", "u"), pod("a", "2", "v")
	other.Status.StartTime = new(metav1.Now())
	other.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, LastTransitionTime: metav1.Now()}}
	one.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}}
	if plain(one) != plain(other) {
		t.Errorf("%s\n%s", plain(one), plain(other))
	}
	other.Spec.NodeName = "n"
	if plain(one) == plain(other) {
		t.Error("another node is not seen")
	}
}

func TestDifferencesAreFound(t *testing.T) {
	labelled := pod("a", "1", "u")
	labelled.Labels = map[string]string{"changed": "without a new version"}
	for _, test := range []struct {
		name       string
		want, have *corev1.Pod // nil if absent
		differs    string
	}{
		{"the same", pod("a", "1", "u"), pod("a", "1", "u"), ""},
		{"missing", pod("a", "1", "u"), nil, "lacks a@1"},
		{"left over", nil, pod("a", "1", "u"), "still has a@1"},
		{"stale", pod("a", "2", "u"), pod("a", "1", "u"), "has a@1 (u), not a@2 (u)"},
		{"another one of that name", pod("a", "1", "v"), pod("a", "1", "u"), "has a@1 (u), not a@1 (v)"},
		{"other content", labelled, pod("a", "1", "u"), "has a@1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := func(p *corev1.Pod) map[string]metav1.Object {
				if p == nil {
					return nil
				}
				return map[string]metav1.Object{keyOf(p): p}
			}
			checkComplaint(t, differences(in(test.want), in(test.have), sameContent), test.differs)
		})
	}
}

func TestHealthLogFindsViolations(t *testing.T) {
	now := time.Now()
	well := tarn.Health{State: tarn.StateWatching, Synced: true, Version: "5", LastContact: now, Watches: 1, Events: 2}
	for _, test := range []struct {
		name string
		then func(*tarn.Health)
		want string
	}{
		{"all well", func(h *tarn.Health) { h.Version, h.Events = "6", 3 }, ""},
		{"a declared rewind", func(h *tarn.Health) { h.Version, h.Rewinds = "4", 1 }, ""},
		{"a silent rewind", func(h *tarn.Health) { h.Version = "4" }, "went back without a rewind"},
		{"no longer synced", func(h *tarn.Health) { h.Synced = false }, "is no more"},
		{"older contact", func(h *tarn.Health) { h.LastContact = now.Add(-time.Second) }, "older than the one before"},
		{"waiting for nothing", func(h *tarn.Health) { h.State = tarn.StateWaiting }, "for no reason"},
		{"failing since never", func(h *tarn.Health) { h.Err, h.Failures = errors.New("x"), 1 }, "since never"},
		{"forgotten events", func(h *tarn.Health) { h.Events = 1 }, "a counter went back"},
	} {
		t.Run(test.name, func(t *testing.T) {
			said := well
			s := &healthLog{health: func() tarn.Health { return said }}
			s.sample()
			test.then(&said)
			s.sample()
			checkComplaint(t, s.complaints(), test.want)
		})
	}
}

// checkComplaint checks that there is a complaint with this text, or none at all if
// the text is empty.
func checkComplaint(t *testing.T, complaints []string, text string) {
	t.Helper()
	all := strings.Join(complaints, "\n")
	if (text == "") != (all == "") || !strings.Contains(all, text) {
		t.Errorf("complaints are %q; wanted %q", all, text)
	}
}
