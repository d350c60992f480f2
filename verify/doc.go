// Package verify proves a replica equal to its server, or finds where it is not.
//
// The engine trusts versions: it does not compare an object whose uid and version are unchanged. That is what makes it cheap, and it is why it cannot see a
// server that was restored and has passed the old version since, a lost event, or an object that a program changed in memory. This package compares content.
//
//	result, err := verify.Once(ctx, verify.Target[*unstructured.Unstructured]{
//		Name: "pods", Replica: replica, Store: store, Sources: sources,
//	}, verify.Options{})
//	fmt.Println(result) // pods: equal at version 184467, 6752 objects, digest 9f1c…
//
// # How two moving things are compared
//
// A snapshot of the copy costs nothing and has a version. The server is then asked
// for its state at exactly that version, page by page, so there is nothing to wait
// for and no change in between that could look like a difference. When the server
// has forgotten the version, a newer snapshot is taken.
//
// Servers that cannot show their past, and copies of several sections, whose
// versions differ, are read at their latest state instead. What differs then may
// only have changed in between: it counts as a difference when versions prove that
// it has not, and is left out otherwise, which the [Result] says.
//
// Both sides are read object by object. Only a page of the server's objects and the
// keys of all are held.
//
// # What counts as equal
//
// Key, uid, version and content, as encoding/json writes it. The server's objects
// go through the copy's transform, and are decoded without its pool: a shared part that
// somebody wrote to must not be compared with itself.
package verify
