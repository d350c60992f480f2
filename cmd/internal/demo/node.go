package demo

import (
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// evictAfter is how long pods stay on a node that is unreachable: five minutes
	// in real clusters, which is too long for a demonstration.
	evictAfter = 8 * time.Second
	renewEvery = 10 * time.Second
	// leaseShare is the largest share of lease renewals in all changes.
	leaseShare  = 0.5
	podsPerNode = 110
)

// node is a simulated machine.
type node struct {
	w       *Workload
	object  *corev1.Node
	lease   *coordinationv1.Lease
	address string
	pods    []*pod
	up      bool
	number  int
	// addresses counts the ones given to pods.
	addresses int
}

func (n *node) name() string { return n.object.Name }
func (n *node) zone() string { return n.object.Labels[corev1.LabelTopologyZone] }

func (n *node) podAddress() string {
	n.addresses++
	return fmt.Sprintf("10.%d.%d.%d", 128+n.number/256, n.number%256, 2+n.addresses%250)
}

// addNode creates a node and its lease.
func (w *Workload) addNode() {
	number := len(w.nodes)
	address := fmt.Sprintf("10.0.%d.%d", number/250, 10+number%240)
	zone := fmt.Sprintf("zone-%c", 'a'+number%3)
	name := fmt.Sprintf("node-%02d", number+1)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("65536Mi"),
		corev1.ResourcePods: resource.MustParse(fmt.Sprint(podsPerNode)), corev1.ResourceEphemeralStorage: resource.MustParse("200Gi"),
	}
	allocatable := capacity.DeepCopy()
	allocatable[corev1.ResourceCPU] = resource.MustParse("15500m")
	allocatable[corev1.ResourceMemory] = resource.MustParse("62000Mi")
	n := &node{w: w, up: true, number: number, address: address, object: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "eu-demo", corev1.LabelInstanceTypeStable: "m16.large",
			corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
		}},
		Spec: corev1.NodeSpec{PodCIDR: fmt.Sprintf("10.%d.%d.0/24", 128+number/256, number%256), ProviderID: "demo:///" + zone + "/" + name},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatable,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: name}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: w.hex(32), SystemUUID: w.hex(32), BootID: w.hex(32), KernelVersion: "6.12.0", OSImage: "Demo Linux 12",
				ContainerRuntimeVersion: "containerd://2.1.0", KubeletVersion: "v1.36.0", OperatingSystem: "linux", Architecture: "amd64",
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
		},
	}}
	for _, image := range []string{"mesh/proxy:1.27.1", "observability/log-shipper:3.2.0"} {
		n.object.Status.Images = append(n.object.Status.Images, corev1.ContainerImage{
			Names: []string{registry + "/" + image, registry + "/sha256:" + digest(image)}, SizeBytes: int64(w.between(20, 400)) << 20,
		})
	}
	n.setConditions(corev1.ConditionFalse, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	w.create(n.object)
	n.lease = &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: n.object.UID}}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new(name), LeaseDurationSeconds: new(int32(40))},
	}
	n.renewLease()
	w.nodes = append(w.nodes, n)
	w.queue.after(w.within(0, w.leaseInterval()), n.keepAlive)
}

// keepAlive renews the lease at intervals, while the node is up and the rate is
// not 0.
func (n *node) keepAlive() {
	if n.up && n.w.rate() > 0 {
		n.renewLease()
	}
	n.w.queue.after(n.w.leaseInterval(), n.keepAlive)
}

// leaseInterval is how often a lease is renewed: as in real clusters, unless there are so
// many nodes that little else would happen at the rate asked for.
func (w *Workload) leaseInterval() time.Duration {
	rate := w.rate()
	if rate <= 0 {
		return renewEvery
	}
	seconds := float64(w.config.nodes()) / (leaseShare * rate)
	return max(renewEvery, time.Duration(min(seconds, 3600)*float64(time.Second)))
}

func (n *node) renewLease() {
	n.lease.Spec.RenewTime = new(metav1.NewMicroTime(n.w.queue.now))
	n.w.put(n.lease)
}

// setConditions sets the pressure conditions and the Ready condition.
func (n *node) setConditions(pressure, ready corev1.ConditionStatus, reason, message string) {
	now := n.w.time()
	before := n.object.Status.Conditions
	n.object.Status.Conditions = nil
	add := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) {
		c := corev1.NodeCondition{Type: kind, Status: status, LastHeartbeatTime: now, LastTransitionTime: now, Reason: reason, Message: message}
		for _, b := range before {
			if b.Type == kind && b.Status == status {
				c.LastTransitionTime = b.LastTransitionTime
			}
		}
		n.object.Status.Conditions = append(n.object.Status.Conditions, c)
	}
	for _, kind := range []struct {
		kind            corev1.NodeConditionType
		reason, message string
	}{
		{corev1.NodeMemoryPressure, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
		{corev1.NodeDiskPressure, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
		{corev1.NodePIDPressure, "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
	} {
		if pressure == corev1.ConditionUnknown {
			kind.reason, kind.message = reason, message
		}
		add(kind.kind, pressure, kind.reason, kind.message)
	}
	add(corev1.NodeReady, ready, reason, message)
}

// fail makes a node unreachable for a while. Its pods become unready, are evicted
// later, and are removed when the node is back.
func (n *node) fail() {
	n.up = false
	n.setConditions(corev1.ConditionUnknown, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")
	now := n.w.time()
	n.object.Spec.Taints = []corev1.Taint{
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &now},
	}
	n.w.put(n.object)
	n.w.event(n.object, "Node", corev1.EventTypeNormal, "NodeNotReady", fmt.Sprintf("Node %s status is now: NodeNotReady", n.name()), "node-controller")
	for _, p := range slices.Clone(n.pods) {
		p.interrupt()
		if p.ready {
			p.ready = false
			p.setCondition(corev1.PodReady, corev1.ConditionFalse, "NodeNotReady", "the node does not answer")
			p.write()
			p.warningEvent("NodeNotReady", "Node is not ready", "node-controller")
		}
		p.set.app.enqueue()
	}
	n.w.queue.after(evictAfter, func() {
		for _, p := range slices.Clone(n.pods) {
			if !p.terminating {
				p.terminate()
				p.set.app.enqueue()
			}
		}
	})
	n.w.queue.after(evictAfter+n.w.within(8*time.Second, 20*time.Second), n.recover)
}

func (n *node) recover() {
	n.up = true
	n.object.Spec.Taints = nil
	n.setConditions(corev1.ConditionFalse, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	n.w.put(n.object)
	n.renewLease()
	n.w.event(n.object, "Node", corev1.EventTypeNormal, "NodeReady", fmt.Sprintf("Node %s status is now: NodeReady", n.name()), "kubelet")
	for _, p := range slices.Clone(n.pods) {
		p.remove()
	}
}

// freeNode is the node with the fewest pods of three random ones, so that pods
// spread without a look at all nodes, or any node with room if those have none.
func (w *Workload) freeNode() *node {
	var found *node
	consider := func(n *node) {
		if n.up && len(n.pods) < podsPerNode && (found == nil || len(n.pods) < len(found.pods)) {
			found = n
		}
	}
	for range 3 {
		consider(pick(w.random, w.nodes))
	}
	for i := 0; found == nil && i < len(w.nodes); i++ {
		consider(w.nodes[i])
	}
	return found
}
