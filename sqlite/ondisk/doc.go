// Package ondisk keeps replicas of Kubernetes resources on disk. After a restart they
// serve their content at once and follow the server from its version without a list, and
// the same file answers SQL.
//
//	db, err := sqlite.Open("/var/lib/app/replica", sqlite.Options{})
//	pods, err := kube.Reflect[*corev1.Pod](ctx, cfg, ondisk.In[*corev1.Pod](db))
//	rows, err := db.Query(ctx, "SELECT namespace, name, status FROM pods WHERE node = 'node-1'", sqlite.Limits{})
//
// A [Keeper] keeps informers; informers.WithDisk, ctrlcache.WithDisk and similar options
// take one.
//
// It is a separate package so that a program without it does not contain a database.
//
// # Tables
//
// A resource of the core group is a table of its own name, pods; the table of any other
// has its group as a suffix, deployments_apps, certificates_cert_manager_io. All have the
// columns key, namespace, name, uid, resource_version, generation, created and deleted (as
// Unix seconds), owner_kind, owner_name, owner_uid (of the controller, or the first
// owner), labels and object: the object as kubectl get -o json shows it, without managed
// fields. Its parts are in object_metadata, object_spec, object_status and object_rest: a
// query that needs one part is faster with that column. Specs that objects share are
// stored once, which is visible only in the tables behind these views. The columns that
// kubectl shows for the usual kinds are there too, see [Columns], and for custom resources
// those of their definition, see [DefinedColumns]. Labels are also in a table with the
// suffix _labels.
//
// # What is not written
//
// Secrets, the annotation in which kubectl apply repeats whole objects, and the fields of
// [Without]. The copy in memory does not have the last two either, so that it is the same
// before and after a restart. A copy that was not made by package kube may have the
// annotation until a restart.
package ondisk
