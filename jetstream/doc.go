// Package jetstream keeps a copy in NATS JetStream, as a key-value bucket that any NATS
// client in any language can read and watch, and reads such a bucket back as a source.
//
//	sink, err := jetstream.New(js, jetstream.Bucket{Name: "pods"}, jetstream.Objects[*corev1.Pod]())
//	replica, err := tarn.NewReplica(source, store, tarn.Options[*corev1.Pod]{Name: "pods", Sinks: []tarn.Sink[*corev1.Pod]{sink}})
//
// The key of an object is its own, with a dot for each slash and other characters escaped:
// default/web is default.web, so default.> is a namespace. The value is the object, as the
// codec writes it. Headers have its version, its uid and what happened.
//
// Keys that begin with _tarn. are not objects. _tarn.checkpoint says which state of the
// source the bucket has. It is the last message of every commit, and a commit is atomic, so
// the bucket and the checkpoint never disagree. _tarn.gap. names ranges of versions in which
// states are missing, _tarn.bad. names objects that are too large to be kept.
//
// One feeder writes a bucket. A second one waits, says so, and takes over when the lease of
// the first has ended. Each write names the checkpoint that it follows; so a feeder that was
// paused for longer than its lease cannot write over its successor.
//
// It needs a NATS server 2.12 or later, for atomic batches.
package jetstream
