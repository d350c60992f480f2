// Package ctrlcache is controller-runtime's cache, drop-in: the same interfaces
// over Tarn's informers. An operator switches by one line,
//
//	ctrl.NewManager(cfg, ctrl.Options{NewCache: ctrlcache.NewCache})
//
// or keeps controller-runtime's own cache and takes only the informers,
//
//	cache.Options{NewInformer: ctrlcache.NewInformer}
//
// Every option of [cache.Options], [cache.ByObject] and [cache.Config] means what
// it means there. What is better:
//
//   - Field selectors need no index. An index of that name is used if there is
//     one; all else, = and != in any combination, is read from the objects, by
//     the names that the fields have in JSON.
//   - Metadata is read from a typed or unstructured copy of the same resource, if
//     there is one with the same settings, instead of being watched twice.
//   - Read-your-writes holds for several namespaces, for deletions, and when
//     events are folded: it waits for versions, not for events. [NewClient]
//     makes it exact; see there for what it adds to controller-runtime's client.
//   - [WithDisk] lets the cache survive a restart: it begins with the content on disk,
//     and follows the server from there without a list.
//   - A read that fails because its informer cannot sync says why.
//   - Removing an informer ends its requests before RemoveInformer returns, and
//     callers that wait for it get an error.
//   - If ByObject names a kind twice, once per form, both entries apply.
//     controller-runtime uses one of them, by chance.
package ctrlcache
