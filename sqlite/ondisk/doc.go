// Package ondisk keeps replicas of Kubernetes resources on disk: after a restart
// they serve at once what they knew, follow the server from there without listing,
// and SQL can be asked of the same file.
//
//	db, err := sqlite.Open("/var/lib/app/replica", sqlite.Options{})
//	pods, err := kube.Reflect[*corev1.Pod](ctx, cfg, ondisk.In[*corev1.Pod](db))
//	rows, err := db.Query(ctx, "SELECT namespace, name, status FROM pods WHERE node = 'node-1'", sqlite.Limits{})
//
// Informers are kept by [Keeper], which informers.WithDisk, ctrlcache.WithDisk and
// their like take.
//
// It is a package by itself so that a program without it does not carry a
// database.
//
// # Tables
//
// A resource of the core group is a table of its own name, pods; any other has its
// group behind it, deployments_apps, certificates_cert_manager_io. All have the
// columns key, namespace, name, uid, resource_version, generation, created and
// deleted (as Unix seconds), owner_kind, owner_name, owner_uid (of the controller,
// or the first owner), labels and object: all of it as kubectl get -o json shows
// it, without managed fields; and object_metadata, object_spec, object_status and
// object_rest, the parts that it is put together from, which is quicker where one
// of them will do. Specs that objects have in common are kept once, which only who
// reads the tables behind these views notices. What kubectl shows of the usual kinds
// are columns too; see [Columns]; of custom resources those that their definition
// names, see [DefinedColumns]. Labels are also in a table with _labels behind its
// name.
//
// # What is not written
//
// Secrets, the annotation in which kubectl apply repeats whole objects, and what
// [Without] names. The copy in memory does not have the last two either, so that it
// is the same before and after a restart. Where copies are made by others than
// package kube, the annotation may be there until a restart.
package ondisk
