package apiserver

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// The controllers of the real controller-manager do nothing with a workload that
// does not say how it is to be rolled out.

func defaultDeployment(spec *appsv1.DeploymentSpec) {
	setIfNil(&spec.Replicas, 1)
	setIfNil(&spec.RevisionHistoryLimit, 10)
	setIfNil(&spec.ProgressDeadlineSeconds, 600)
	setIfEmpty(&spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		if spec.Strategy.RollingUpdate == nil {
			spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
		}
		setIfNil(&spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setIfNil(&spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	defaultTemplate(&spec.Template.Spec)
}

func defaultStatefulSet(spec *appsv1.StatefulSetSpec) {
	setIfNil(&spec.Replicas, 1)
	setIfNil(&spec.RevisionHistoryLimit, 10)
	setIfEmpty(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	setIfEmpty(&spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		if spec.UpdateStrategy.RollingUpdate == nil {
			spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		}
		setIfNil(&spec.UpdateStrategy.RollingUpdate.Partition, 0)
	}
	if spec.PersistentVolumeClaimRetentionPolicy == nil {
		spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{}
	}
	setIfEmpty(&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setIfEmpty(&spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	defaultTemplate(&spec.Template.Spec)
}

func defaultDaemonSet(spec *appsv1.DaemonSetSpec) {
	setIfNil(&spec.RevisionHistoryLimit, 10)
	setIfEmpty(&spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		if spec.UpdateStrategy.RollingUpdate == nil {
			spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{}
		}
		setIfNil(&spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setIfNil(&spec.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	defaultTemplate(&spec.Template.Spec)
}

func defaultJob(spec *batchv1.JobSpec) {
	if spec.Completions == nil && spec.Parallelism == nil {
		spec.Completions = ptr.To(int32(1))
	}
	setIfNil(&spec.Parallelism, 1)
	setIfNil(&spec.BackoffLimit, 6)
	setIfNil(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	setIfNil(&spec.Suspend, false)
	setIfNil(&spec.ManualSelector, false)
	setIfNil(&spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	defaultTemplate(&spec.Template.Spec)
}

// defaultSelector has a job select the pods that it makes, by labels that no other
// job has.
func defaultSelector(job *batchv1.Job) {
	if ptr.Deref(job.Spec.ManualSelector, false) || job.Spec.Selector != nil {
		return
	}
	uid := string(job.UID)
	own := map[string]string{batchv1.ControllerUidLabel: uid, "controller-uid": uid, batchv1.JobNameLabel: job.Name, "job-name": job.Name}
	mergeInto(&job.Labels, own)
	mergeInto(&job.Spec.Template.Labels, own)
	job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: uid}}
}

func defaultCronJob(spec *batchv1.CronJobSpec) {
	setIfEmpty(&spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	setIfNil(&spec.Suspend, false)
	setIfNil(&spec.SuccessfulJobsHistoryLimit, 3)
	setIfNil(&spec.FailedJobsHistoryLimit, 1)
	defaultTemplate(&spec.JobTemplate.Spec.Template.Spec)
}

func defaultService(spec *corev1.ServiceSpec) {
	setIfEmpty(&spec.Type, corev1.ServiceTypeClusterIP)
	setIfEmpty(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	for i := range spec.Ports {
		port := &spec.Ports[i]
		setIfEmpty(&port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort == (intstr.IntOrString{}) {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
}
