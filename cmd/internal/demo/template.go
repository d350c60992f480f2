package demo

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const registry = "registry.example.com"

// imageName is the image of a container; release is "1.4.2" or similar.
func imageName(namespace, app, release string) string {
	return fmt.Sprintf("%s/%s/%s:%s", registry, namespace, app, release)
}

// template makes the pod template of an app. Pods are as large as those of real
// clusters: most of a pod is the same in all pods of its ReplicaSet, and that is
// what a copy can share.
func (c random) template(namespace, app, release string, labels map[string]string) corev1.PodTemplateSpec {
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
		ServiceAccountName: "default", DeprecatedServiceAccount: "default", EnableServiceLinks: new(true),
		TerminationGracePeriodSeconds: new(int64(30)),
		SecurityContext:               &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(10001)), FSGroup: new(int64(10001))},
		Tolerations: []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(evictAfter.Seconds()))},
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(evictAfter.Seconds()))},
		},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{nameLabel: app}},
		}},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: app + "-config"}, DefaultMode: new(int32(420))}}},
			{Name: "credentials", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: app + "-credentials", DefaultMode: new(int32(256))}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("256Mi"))}}},
		},
		Containers: []corev1.Container{c.mainContainer(namespace, app, release)},
	}
	if c.oneIn(2) {
		spec.Containers = append(spec.Containers, c.sidecar("mesh-proxy", "mesh/proxy:1.27.1", 15090))
	}
	if c.oneIn(4) {
		spec.Containers = append(spec.Containers, c.sidecar("log-shipper", "observability/log-shipper:3.2.0", 2020))
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{
			"checksum/config": c.hex(64), "prometheus.io/scrape": "true", "prometheus.io/port": "9090", "prometheus.io/path": "/metrics",
		}},
		Spec: spec,
	}
}

func (c random) mainContainer(namespace, app, release string) corev1.Container {
	main := container(app, imageName(namespace, app, release), 8080)
	main.Command = []string{"/usr/local/bin/" + app}
	main.Args = []string{"--config=/etc/" + app + "/config.yaml", "--listen=:8080", "--metrics-listen=:9090", fmt.Sprintf("--workers=%d", c.between(2, 32))}
	main.Ports = append(main.Ports, corev1.ContainerPort{Name: "metrics", ContainerPort: 9090, Protocol: corev1.ProtocolTCP})
	main.Env = []corev1.EnvVar{
		{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
		{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}},
		{Name: "DATABASE_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: app + "-credentials"}, Key: "password"}}},
		{Name: "OTEL_SERVICE_NAME", Value: app},
		{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://collector.analytics.svc.cluster.local:4317"},
		{Name: "LOG_LEVEL", Value: "info"},
	}
	settings := []string{"CACHE_TTL", "REQUEST_TIMEOUT", "RETRY_BUDGET", "POOL_SIZE", "SHARDS", "BATCH_SIZE", "QUEUE_LENGTH", "GOMEMLIMIT"}
	for _, name := range settings[:c.between(2, len(settings))] {
		main.Env = append(main.Env, corev1.EnvVar{Name: name, Value: fmt.Sprint(c.between(1, 2048))})
	}
	main.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: app + "-config"}}}}
	main.Resources = corev1.ResourceRequirements{
		Requests: resources(pick(c, []string{"50m", "100m", "250m"}), pick(c, []string{"128Mi", "256Mi", "512Mi"})),
		Limits:   resources("1", "1Gi"),
	}
	main.VolumeMounts = []corev1.VolumeMount{
		{Name: "config", ReadOnly: true, MountPath: "/etc/" + app},
		{Name: "credentials", ReadOnly: true, MountPath: "/var/run/secrets/" + app},
		{Name: "scratch", MountPath: "/tmp"},
	}
	main.LivenessProbe = probe("/healthz", 10, 3)
	main.ReadinessProbe = probe("/readyz", 5, 2)
	main.StartupProbe = probe("/healthz", 2, 30)
	return main
}

func (c random) sidecar(name, image string, port int32) corev1.Container {
	side := container(name, registry+"/"+image, port)
	side.Args = []string{"--admin-port=15000", fmt.Sprintf("--drain-time=%ds", c.between(5, 45))}
	side.Env = []corev1.EnvVar{{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "spec.nodeName"}}}}
	side.Resources = corev1.ResourceRequirements{Requests: resources("10m", "40Mi"), Limits: resources("200m", "128Mi")}
	side.VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/tmp"}}
	side.ReadinessProbe = probe("/ready", 5, 4)
	return side
}

func container(name, image string, port int32) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Ports:                  []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func probe(path string, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}},
		TimeoutSeconds: 1, PeriodSeconds: period, SuccessThreshold: 1, FailureThreshold: failures,
	}
}

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}
