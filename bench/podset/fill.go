package podset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// fillWriters is how many pods are written at the same time.
const fillWriters = 32

// Fill creates pods on a server. Those that it finds invalid are left out: the data is that
// of another cluster.
func Fill(ctx context.Context, client kubernetes.Interface, pods [][]byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, refused atomic.Int64
	namespaces := map[string]bool{}
	decoded := make([]*corev1.Pod, len(pods))
	for i, raw := range pods {
		pod := new(corev1.Pod)
		if err := pod.Unmarshal(raw); err != nil {
			return err
		}
		decoded[i] = pod
		if !namespaces[pod.Namespace] {
			namespaces[pod.Namespace] = true
			if err := createNamespace(ctx, client, pod.Namespace); err != nil {
				return err
			}
		}
	}
	done := make(chan struct{})
	for range fillWriters {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := next.Add(1) - 1; i < int64(len(decoded)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				switch err := createPod(ctx, client, decoded[i]); {
				case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
					refused.Add(1)
				case err != nil && !apierrors.IsAlreadyExists(err):
					cancel(err)
				}
			}
		}()
	}
	for range fillWriters {
		<-done
	}
	if refused.Load() > int64(len(pods)/4) {
		return fmt.Errorf("%d of %d pods were refused", refused.Load(), len(pods))
	}
	return context.Cause(ctx)
}

func createNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		_, err = client.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// createPod creates a pod with its status, without what refers to objects that the
// cluster lacks, and without the volume that the server adds: managedFields would name
// it, and so differ between pods that have the same fields in a real cluster.
func createPod(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	pod.UID, pod.ResourceVersion, pod.ManagedFields = "", "", nil
	spec := &pod.Spec
	spec.ServiceAccountName, spec.DeprecatedServiceAccount = "", ""
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return addedByServer(v.Name) })
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return addedByServer(m.Name) })
		}
	}
	spec.Priority, spec.PriorityClassName, spec.PreemptionPolicy, spec.RuntimeClassName = nil, "", nil, nil
	spec.Overhead, spec.EphemeralContainers = nil, nil
	status := pod.Status
	created, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	status.EphemeralContainerStatuses = nil
	status.QOSClass = created.Status.QOSClass
	created.Status = status
	if _, err := client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil && !apierrors.IsInvalid(err) {
		return err
	}
	return nil
}

// addedByServer reports whether a volume is the one for the token of the service account.
func addedByServer(volume string) bool { return strings.HasPrefix(volume, "kube-api-access-") }
