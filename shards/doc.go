// Package shards divides objects among the processes of a group, by Kubernetes Leases.
//
// Each process is a [Member]. It says which objects the process may work on, and confines
// the copies of the process to these objects:
//
//	member, err := shards.New(cfg, shards.Options{Namespace: "prod", Group: "billing"})
//	…
//	factory, err := informers.NewSharedInformerFactoryForConfig(cfg, 0,
//		informers.WithSharding(member.Sharding(), &corev1.Pod{}))
//	…
//	go member.Run(ctx)
//
// A worker asks before it works on an object:
//
//	done, ok := member.Begin(pod)
//	if !ok {
//		return // another process does it
//	}
//	defer done()
//
// # Promises
//
//   - At most one process works on an object, as long as the work on it, together with any
//     pause of the process, takes less than Options.Margin, and clocks do not drift apart
//     by more than what is left of it within Options.Duration. Clocks need not agree.
//   - A planned change, when a process joins or leaves, waits for work that has begun.
//     The copies of the new owner have the objects before the old owner gives them up.
//   - Objects of a process that died have another owner within about Options.Duration.
//
// # How it works
//
// The hashes of objects are divided into 120 slots. A Lease for the group has the table
// of slots: the owner of each, and its next owner. All members write it, by optimistic
// locking. Each member also renews its own Lease, and works only while the last renewal
// is younger than Duration less Margin. Only the owner gives a slot away, or a member
// that has seen no renewal for Duration and has deleted the owner's Lease in exactly the
// version that it had seen: an owner that comes back finds its Lease gone, and joins as a
// new member. So even an old table is right about the slots of the member that reads it,
// and no leader is needed. If the Lease of the group is deleted, each member writes its own
// slots into the next one, and nobody takes a slot without owner before all have.
package shards
