package demo

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// journal is the Events of the cluster: what happens again to the same object is
// counted, and the oldest make room for new ones. A real server forgets them
// after an hour.
type journal struct {
	most   int
	events []*corev1.Event // oldest first
	latest map[story]*corev1.Event
}

// story is what makes two Events the same.
type story struct{ kind, namespace, name, reason string }

// event notes what happened to an object.
func (w *Workload) event(of Object, kind, eventType, reason, message, source string) {
	key := story{kind, of.GetNamespace(), of.GetName(), reason}
	now := w.time()
	if again := w.journal.latest[key]; again != nil {
		again.Count++
		again.LastTimestamp, again.Message = now, message
		w.put(again)
		return
	}
	version := "v1"
	switch kind {
	case "Deployment", "ReplicaSet":
		version = appsVersion
	case "HorizontalPodAutoscaler":
		version = "autoscaling/v2"
	case databaseKind:
		version = databaseGroup + "/" + databaseVersion
	}
	namespace := of.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: of.GetName() + "." + w.hex(16)},
		InvolvedObject: corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: of.GetNamespace(), Name: of.GetName(), UID: of.GetUID()},
		Type:           eventType, Reason: reason, Message: message, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: source}, ReportingController: source,
	}
	w.journal.events = append(w.journal.events, event)
	w.journal.latest[key] = event
	w.put(event)
	if len(w.journal.events) > w.journal.most {
		oldest := w.journal.events[0]
		w.journal.events = w.journal.events[1:]
		delete(w.journal.latest, story{oldest.InvolvedObject.Kind, oldest.InvolvedObject.Namespace, oldest.InvolvedObject.Name, oldest.Reason})
		w.delete(oldest)
	}
}
