package demo

import (
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	// keptSets is how many ReplicaSets of the past are kept.
	keptSets = 2
)

// app is a Deployment with everything that belongs to it.
type app struct {
	w *Workload
	identity
	deployment *appsv1.Deployment
	// sets are the Deployment's ReplicaSets, the current one last.
	sets []*replicaSet
	// The following are nil for an app that another user created.
	service *corev1.Service
	slice   *discoveryv1.EndpointSlice
	config  *corev1.ConfigMap
	scaler  *autoscalingv2.HorizontalPodAutoscaler

	// usualReplicas is the size around which the app is scaled.
	usualReplicas int32
	// brokenImage cannot be pulled.
	brokenImage string
	release     [3]int
	revision    int
	// generation is how often the spec of its Deployment has been changed.
	generation int64
	// queued says that its controllers will reconcile it soon.
	queued bool
	// deleted says that its Deployment has been deleted.
	deleted bool
}

// labels are those of everything that belongs to the app. An app of another user
// has its own.
func (a *app) labels() map[string]string {
	if a.service == nil && a.deployment != nil {
		return maps.Clone(a.deployment.Spec.Template.Labels)
	}
	return map[string]string{nameLabel: a.name, partOfLabel: a.namespace, teamLabel: a.team}
}

func (a *app) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: a.namespace, Name: name, Labels: a.labels()}
}

func (a *app) version() string {
	return fmt.Sprintf("%d.%d.%d", a.release[0], a.release[1], a.release[2])
}

// createApp creates an app with pods that are already running.
func (w *Workload) createApp(who identity, replicas int32) {
	a := &app{w: w, identity: who, usualReplicas: replicas, generation: 1, release: [3]int{w.between(1, 6), w.between(0, 20), w.between(0, 9)}}
	w.apps = append(w.apps, a)
	a.putConfig()
	a.putService()
	a.deployment = &appsv1.Deployment{
		ObjectMeta: a.meta(a.name),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(replicas), RevisionHistoryLimit: new(int32(keptSets)), ProgressDeadlineSeconds: new(int32(600)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{nameLabel: a.name}},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge: new(intstr.FromString("25%")), MaxUnavailable: new(intstr.FromString("25%")),
			}},
			Template: w.template(a.namespace, a.name, a.version(), a.labels()),
		},
	}
	w.create(a.deployment)
	set := a.newSet()
	set.object.Spec.Replicas = new(replicas)
	w.create(set.object)
	for range replicas {
		if p := set.newPod(); !p.createRunning() {
			p.create()
		}
	}
	a.report()
	a.putScaler()
}

func (a *app) putConfig() {
	a.config = &corev1.ConfigMap{ObjectMeta: a.meta(a.name + "-config"), Data: map[string]string{
		"config.yaml":     fmt.Sprintf("service: %s\nlisten: :8080\nlog:\n  level: info\n  format: json\nupstreams:\n- name: ledger\n  url: http://ledger.payments.svc:8080\n", a.name),
		"feature.sampled": fmt.Sprint(a.w.between(1, 100)),
		"cache.ttl":       fmt.Sprintf("%ds", a.w.between(5, 600)),
	}}
	a.w.put(a.config)
	a.w.put(&corev1.Secret{ObjectMeta: a.meta(a.name + "-credentials"), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{
		"username": []byte(a.name), "password": []byte(a.w.hex(24)), "token": []byte(a.w.hex(64)),
	}})
}

func (a *app) putService() {
	address := fmt.Sprintf("10.96.%d.%d", len(a.w.apps)/250, 1+len(a.w.apps)%250)
	a.service = &corev1.Service{ObjectMeta: a.meta(a.name), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: address, ClusterIPs: []string{address},
		Selector: map[string]string{nameLabel: a.name},
		Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP}},
	}}
	a.w.create(a.service)
	a.slice = &discoveryv1.EndpointSlice{
		ObjectMeta:  a.meta(a.name + "-" + a.w.suffix(5)),
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
	}
	a.slice.Labels[discoveryv1.LabelServiceName] = a.name
	a.slice.OwnerReferences = ownedBy(a.service, "v1", "Service")
}

// putScaler lets every app of some size be scaled.
func (a *app) putScaler() {
	if a.usualReplicas < 3 {
		return
	}
	a.scaler = &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: a.meta(a.name), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: appsVersion, Kind: "Deployment", Name: a.name},
		MinReplicas:    new(max(1, a.usualReplicas/2)), MaxReplicas: a.usualReplicas * 2,
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(65))},
		}}},
	}}
	a.putLoad(65)
}

// putLoad sets the CPU usage that the autoscaler sees.
func (a *app) putLoad(percent int32) {
	status := &a.scaler.Status
	status.CurrentReplicas, status.DesiredReplicas = a.deployment.Status.Replicas, *a.deployment.Spec.Replicas
	status.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{
		Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: &percent},
	}}}
	a.w.put(a.scaler)
}

// scale sets the number of replicas, as the autoscaler does.
func (a *app) scale(replicas int32) {
	before := *a.deployment.Spec.Replicas
	if before == replicas {
		return
	}
	*a.deployment.Spec.Replicas = replicas
	a.generation++
	a.w.put(a.deployment)
	if a.scaler != nil {
		reason, percent := "cpu resource utilization (percentage of request) above target", int32(a.w.between(70, 98))
		if replicas < before {
			reason, percent = "All metrics below target", int32(a.w.between(10, 50))
		}
		now := a.w.time()
		a.scaler.Status.LastScaleTime = &now
		a.putLoad(percent)
		a.w.event(a.scaler, "HorizontalPodAutoscaler", corev1.EventTypeNormal, "SuccessfulRescale", fmt.Sprintf("New size: %d; reason: %s", replicas, reason), "horizontal-pod-autoscaler")
	}
	a.enqueue()
}

// deploy rolls out a new release.
func (a *app) deploy() {
	a.release[2]++
	if a.w.oneIn(4) {
		a.release[1], a.release[2] = a.release[1]+1, 0
	}
	a.setImage(imageName(a.namespace, a.name, a.version()))
}

// deployBroken rolls out an image that does not exist, and the right one a while
// later.
func (a *app) deployBroken() {
	a.brokenImage = imageName(a.namespace, a.name, a.version()+"-rc1")
	a.setImage(a.brokenImage)
	a.w.queue.after(a.w.within(15*time.Second, 25*time.Second), func() {
		if !a.deleted && a.deployment.Spec.Template.Spec.Containers[0].Image == a.brokenImage {
			a.deploy()
		}
	})
}

func (a *app) setImage(image string) {
	a.deployment.Spec.Template.Spec.Containers[0].Image = image
	metav1.SetMetaDataAnnotation(&a.deployment.Spec.Template.ObjectMeta, "checksum/config", a.w.hex(64))
	a.generation++
	a.w.put(a.deployment)
	a.newRevision()
}

// newRevision creates the ReplicaSet of the Deployment's current template.
func (a *app) newRevision() {
	a.w.create(a.newSet().object)
	a.enqueue()
}

// settled reports that the app has no unfinished change.
func (a *app) settled() bool {
	set := a.current()
	if a.queued || *set.object.Spec.Replicas != *a.deployment.Spec.Replicas {
		return false
	}
	for _, s := range a.sets {
		if len(s.pods) != int(*s.object.Spec.Replicas) {
			return false
		}
		for _, p := range s.pods {
			if !p.ready || p.terminating {
				return false
			}
		}
	}
	return true
}

func (a *app) current() *replicaSet { return a.sets[len(a.sets)-1] }
