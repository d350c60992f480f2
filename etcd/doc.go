// Package etcd follows a prefix of etcd as a live collection: a tree of settings, a registry
// of services, anything that programs keep there.
//
//	source, err := etcd.NewSource(client, "/config/", etcd.JSON[Config])
//	replica, err := tarn.NewReplica(source, memory.New[*etcd.Entry[Config]](), tarn.Options[*etcd.Entry[Config]]{Name: "config"})
//	go replica.Run(ctx)
//
// The first state is read in pages, all at one revision, and watched from that revision.
// Versions are etcd's revisions. What the engine promises of Kubernetes holds here too: a
// compacted revision costs one read, a restored cluster is noticed, a value that cannot be
// decoded is one bad object, and a copy on disk resumes where it was.
//
// Authentication and TLS are those of the client.
package etcd
