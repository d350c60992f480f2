// Package mirror keeps live copies of several resources of one cluster: what is
// there to copy, the copies, how they are doing, and what is wrong with them.
//
//	catalog, err := mirror.Discover(ctx, cfg)          // what the server has
//	pods, err := catalog.Find("po")
//	m, err := mirror.Start(ctx, cfg, []mirror.Resource{pods}, mirror.Options{})
//	err = m.WaitSynced(ctx)                            // says which are not, and why
//	table, _ := m.Table("pods")
//	for key, pod := range table.Replica().All() { … }
//
// [Table.Status] and [Table.History] tell how a table is doing, [Mirror.Problems]
// what is wrong and what to do about it, [Mirror.Collector] shows both to
// Prometheus, and [Table.Target] lets package verify compare it with the server.
//
// All tables of a mirror share one connection and one pool of equal parts, so
// that a mirror of a whole cluster is much less than the sum of its objects.
//
// With [Options.Disk] a mirror is on disk too: started again it serves at once what
// it knew, and [Mirror.SQL] answers statements. [OpenDirectory] reads such a
// directory beside the mirror that writes it, or without one, as a mirror of its
// own.
//
// Values of Secrets are not kept unless [Options.ShowSecrets] says so.
package mirror
