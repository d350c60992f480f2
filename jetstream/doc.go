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
// source the bucket has, and is the last message of every commit. A commit is one atomic
// batch if it is small enough for the server. A larger one begins with a checkpoint that is
// marked incomplete, and readers wait for the complete checkpoint at its end. _tarn.gap. names ranges of
// versions in which states are missing, _tarn.bad. names objects that are too large to be kept.
//
// One feeder writes a bucket. A second one waits, says so, and takes over when the lease of
// the first has ended. Each write names the checkpoint that it follows; so a feeder that was
// paused for longer than its lease cannot write over its successor.
//
// It needs a NATS server 2.12 or later, for atomic batches.
package jetstream
