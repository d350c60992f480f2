// Package shards divides objects among the processes of a group, by Kubernetes Leases.
//
// Each process is a [Member]. It tells which objects the process may work on, and has the
// copies of the process hold these objects and no others:
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
// # What is promised
//
//   - At most one process works on an object, as long as the work on it, together with any
//     pause of the process, takes less than Options.Margin, and clocks do not drift apart
//     by more than what is left of it within Options.Duration. Clocks need not agree.
//   - A planned change, a process that joins or leaves, waits for work that has begun. The
//     copies of the new owner have the objects before the old one lets go.
//   - Objects of a process that died have another owner within about Options.Duration.
//
// # How it works
//
// The hashes of objects are divided into 120 slots. A Lease for the group has the table of
// slots: who owns each, and who is to own it next. Everybody writes it, by optimistic
// locking. Each member has a Lease of its own, which it renews; it works only while the
// last renewal is younger than Duration less Margin. Nobody takes a slot away but its owner,
// or one who has seen no renewal for Duration and deleted the owner's Lease in exactly the
// version that it had seen: an owner that comes back finds its Lease gone, and joins as
// somebody else. So a table that is out of date is never wrong about who owns a slot
// oneself, and no process needs to be elected.
package shards
