package demo

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// report writes the state of an app to the status of its ReplicaSets and its
// Deployment and to its EndpointSlice, where it has changed.
func (a *app) report() {
	total := appsv1.DeploymentStatus{Conditions: a.deployment.Status.Conditions, ObservedGeneration: a.generation}
	for i, set := range a.sets {
		active, ready := set.active(), set.ready()
		set.report(active, ready)
		total.Replicas += active
		total.ReadyReplicas += ready
		if i == len(a.sets)-1 {
			total.UpdatedReplicas = active
		}
	}
	a.reportEndpoints()
	if a.deleted {
		return
	}
	wanted := *a.deployment.Spec.Replicas
	total.AvailableReplicas = total.ReadyReplicas
	total.UnavailableReplicas = max(0, wanted-total.ReadyReplicas)
	_, least := a.limits()
	total.Conditions = a.conditions(total.Conditions, total.ReadyReplicas >= least, total.UpdatedReplicas == wanted && total.ReadyReplicas >= wanted)
	if !equality.Semantic.DeepEqual(total, a.deployment.Status) {
		a.deployment.Status = total
		a.w.put(a.deployment)
	}
}

func (s *replicaSet) report(active, ready int32) {
	status := appsv1.ReplicaSetStatus{Replicas: active, FullyLabeledReplicas: active, ReadyReplicas: ready, AvailableReplicas: ready, ObservedGeneration: s.generation}
	if equality.Semantic.DeepEqual(status, s.object.Status) {
		return
	}
	s.object.Status = status
	s.app.w.put(s.object)
}

func (a *app) conditions(before []appsv1.DeploymentCondition, available, complete bool) []appsv1.DeploymentCondition {
	next := []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable", Message: "Deployment has minimum availability."},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", Message: "ReplicaSet \"" + a.current().object.Name + "\" has successfully progressed."},
	}
	if !available {
		next[0].Status, next[0].Reason, next[0].Message = corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
	}
	if !complete {
		next[1].Reason, next[1].Message = "ReplicaSetUpdated", "ReplicaSet \""+a.current().object.Name+"\" is progressing."
	}
	for i := range next {
		c := &next[i]
		c.LastTransitionTime, c.LastUpdateTime = a.w.time(), a.w.time()
		old := slices.IndexFunc(before, func(b appsv1.DeploymentCondition) bool { return b.Type == c.Type })
		if old < 0 {
			continue
		}
		if before[old].Status == c.Status {
			c.LastTransitionTime = before[old].LastTransitionTime
		}
		if before[old].Reason == c.Reason && before[old].Message == c.Message {
			c.LastUpdateTime = before[old].LastUpdateTime
		}
	}
	return next
}

// reportEndpoints lists the pods that have an address.
func (a *app) reportEndpoints() {
	if a.slice == nil {
		return
	}
	var endpoints []discoveryv1.Endpoint
	for _, set := range a.sets {
		for _, p := range set.pods {
			if p.object.Status.PodIP == "" {
				continue
			}
			endpoints = append(endpoints, discoveryv1.Endpoint{
				Addresses: []string{p.object.Status.PodIP}, NodeName: new(p.node.name()), Zone: new(p.node.zone()),
				Conditions: discoveryv1.EndpointConditions{Ready: new(p.ready && !p.terminating), Serving: new(p.ready), Terminating: new(p.terminating)},
				TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: p.object.Namespace, Name: p.object.Name, UID: p.object.UID},
			})
		}
	}
	if a.slice.UID != "" && equality.Semantic.DeepEqual(endpoints, a.slice.Endpoints) {
		return
	}
	a.slice.Endpoints = endpoints
	if a.slice.UID == "" {
		a.w.create(a.slice)
	} else {
		a.w.put(a.slice)
	}
}
