package apiserver

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// defaultPod also fills in what a pod has and a template has not.
func defaultPod(pod *corev1.Pod) {
	defaultTemplate(&pod.Spec)
	setIfNil(&pod.Spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	for i := range pod.Spec.Containers {
		requestLimits(&pod.Spec.Containers[i].Resources)
	}
	for i := range pod.Spec.InitContainers {
		requestLimits(&pod.Spec.InitContainers[i].Resources)
	}
	setIfEmpty(&pod.Status.Phase, corev1.PodPending)
	setIfEmpty(&pod.Status.QOSClass, serviceClass(&pod.Spec))
}

func defaultTemplate(pod *corev1.PodSpec) {
	setIfEmpty(&pod.RestartPolicy, corev1.RestartPolicyAlways)
	setIfEmpty(&pod.DNSPolicy, corev1.DNSClusterFirst)
	setIfEmpty(&pod.SchedulerName, corev1.DefaultSchedulerName)
	if pod.SecurityContext == nil {
		pod.SecurityContext = &corev1.PodSecurityContext{}
	}
	setIfNil(&pod.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	for i := range pod.Containers {
		defaultContainer(&pod.Containers[i])
	}
	for i := range pod.InitContainers {
		defaultContainer(&pod.InitContainers[i])
	}
}

func defaultContainer(c *corev1.Container) {
	setIfEmpty(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setIfEmpty(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	setIfEmpty(&c.ImagePullPolicy, pullPolicy(c.Image))
	for i := range c.Ports {
		setIfEmpty(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil {
			defaultProbe(probe)
		}
	}
}

// pullPolicy of an image that may have changed since it was last pulled is to
// pull it always: one with the tag latest, or none at all.
func pullPolicy(image string) corev1.PullPolicy {
	name := image[strings.LastIndexByte(image, '/')+1:]
	_, tag, tagged := strings.Cut(name, ":")
	if strings.Contains(name, "@") || tagged && tag != "latest" {
		return corev1.PullIfNotPresent
	}
	return corev1.PullAlways
}

func defaultProbe(probe *corev1.Probe) {
	for field, value := range map[*int32]int32{&probe.TimeoutSeconds: 1, &probe.PeriodSeconds: 10, &probe.SuccessThreshold: 1, &probe.FailureThreshold: 3} {
		if *field == 0 {
			*field = value
		}
	}
	if probe.HTTPGet != nil {
		setIfEmpty(&probe.HTTPGet.Path, "/")
		setIfEmpty(&probe.HTTPGet.Scheme, corev1.URISchemeHTTP)
	}
}

// requestLimits uses the limit as the request if there is no request.
func requestLimits(resources *corev1.ResourceRequirements) {
	for name, limit := range resources.Limits {
		if _, there := resources.Requests[name]; there {
			continue
		}
		if resources.Requests == nil {
			resources.Requests = corev1.ResourceList{}
		}
		resources.Requests[name] = limit.DeepCopy()
	}
}

// serviceClass is the quality of service of a pod: guaranteed if requests equal
// limits in every container, best effort if there are none.
func serviceClass(pod *corev1.PodSpec) corev1.PodQOSClass {
	asks, exact := false, true
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for _, c := range containers {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
				asks = asks || !request.IsZero() || !limit.IsZero()
				exact = exact && !limit.IsZero() && request.Cmp(limit) == 0
			}
		}
	}
	switch {
	case !asks:
		return corev1.PodQOSBestEffort
	case exact:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
