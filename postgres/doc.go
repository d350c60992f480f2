// Package postgres writes replicas to a PostgreSQL database: a [tarn.Sink] on tables that
// any SQL client can read.
//
//	db, err := postgres.Connect("postgres://tarn@db.example/fleet", postgres.Options{Cluster: "prod-1"})
//	pods, err := kube.Reflect[*corev1.Pod](ctx, cfg, postgres.In[*corev1.Pod](db))
//
// Each resource has a table with the columns of package columns, labels and the whole
// object as jsonb, and the cluster; see docs/engines.md for all tables.
//
//   - Rows, deletes, gaps and the position of a batch are one transaction. After a restart
//     the watch resumes where the last transaction ended.
//   - One process at a time feeds a resource of a cluster. It holds a lease in the row of
//     its position; every transaction must hit that row. There are no session locks, so a
//     connection pooler between transactions does not matter.
//   - What Postgres refuses, such as the character U+0000, is quarantined: the table
//     tarn_quarantine names the object, and everything else is committed.
//   - With [Options.History] every state is kept in a second table.
package postgres
