package demo

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// eventLog holds the Events of the cluster. Repeated Events of an object are
// counted in one, and above the limit the oldest are deleted. A real server
// deletes them after an hour.
type eventLog struct {
	limit  int
	events []*corev1.Event // oldest first
	latest map[eventKey]*corev1.Event
}

// eventKey is equal for Events that are counted in one.
type eventKey struct{ kind, namespace, name, reason string }

// event records an Event of an object.
func (w *Workload) event(of Object, kind, eventType, reason, message, source string) {
	key := eventKey{kind, of.GetNamespace(), of.GetName(), reason}
	now := w.time()
	if again := w.eventLog.latest[key]; again != nil {
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
	w.eventLog.events = append(w.eventLog.events, event)
	w.eventLog.latest[key] = event
	w.put(event)
	if len(w.eventLog.events) > w.eventLog.limit {
		oldest := w.eventLog.events[0]
		w.eventLog.events = w.eventLog.events[1:]
		delete(w.eventLog.latest, eventKey{oldest.InvolvedObject.Kind, oldest.InvolvedObject.Namespace, oldest.InvolvedObject.Name, oldest.Reason})
		w.delete(oldest)
	}
}
