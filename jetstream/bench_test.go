package jetstream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
)

// BenchmarkFeed compares commits of pods of 9.6 KB with a bare asynchronous publisher of the
// same bytes: the same server, storage and window. Rounds alternate, because a busy machine
// is not the same one a minute later.
func BenchmarkFeed(b *testing.B) {
	const window = maxBatch
	s := startServer(b)
	js := s.connect()
	codec := Objects[*corev1.Pod]()
	changes := make([]tarn.Change[*corev1.Pod], 4*(window-1)) // as a feeder has them that is behind
	for i := range changes {
		p := benchPod(i)
		changes[i] = tarn.Change[*corev1.Pod]{Type: tarn.Update, Key: tarn.Key("default/" + p.Name), Object: p, Version: tarn.Version(p.ResourceVersion)}
	}
	sink, err := New(js, Bucket{Name: "fed", Events: true}, codec)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := sink.Open(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	defer sink.Close()
	bare, err := jetstream.New(js.Conn(), jetstream.WithPublishAsyncMaxPending(window))
	if err != nil {
		b.Fatal(err)
	}
	plain := Bucket{Name: "bare", Events: true}
	config := plain.config()
	if _, err := js.CreateStream(b.Context(), config); err != nil {
		b.Fatal(err)
	}
	var feeding, publishing, encoding time.Duration
	var bytes int64
	for n := range b.N {
		made, took, size := publishBare(b, bare, sink, changes)
		encoding, publishing, bytes = encoding+made, publishing+took, bytes+size
		begun := time.Now()
		at := tarn.Version(fmt.Sprint(1_000_000 + n))
		if err := sink.Commit(b.Context(), tarn.Batch[*corev1.Pod]{Changes: changes, Positions: []tarn.Position{tarn.At(at)}, LastContact: begun}); err != nil {
			b.Fatal(err)
		}
		feeding += time.Since(begun)
	}
	objects := float64(b.N * len(changes))
	b.ReportMetric(float64(bytes)/objects, "bytes/object")
	b.ReportMetric(float64(feeding.Microseconds())/objects, "µs/fed")
	b.ReportMetric(float64(publishing.Microseconds())/objects, "µs/published")
	b.ReportMetric(float64(encoding.Microseconds())/objects, "µs/encoded")
	b.ReportMetric(float64(publishing)/float64(feeding), "of-bare")
	b.ReportMetric(float64(publishing+encoding)/float64(feeding), "of-bare-and-encoding")
}

// publishBare encodes the messages of changes, then publishes them and waits for all answers,
// and says how long each took.
func publishBare(b *testing.B, js jetstream.JetStream, sink *Sink[*corev1.Pod], changes []tarn.Change[*corev1.Pod]) (encoding, publishing time.Duration, bytes int64) {
	begun := time.Now()
	messages := make([]*nats.Msg, len(changes))
	for i, c := range changes {
		m, err := sink.object(&writer[*corev1.Pod]{&space{}, sink.codec.Append}, c, "")
		if err != nil {
			b.Fatal(err)
		}
		var out outgoing
		out.begin(m)
		out.Subject = "bare." + strings.TrimPrefix(m.subject, sink.bucket.prefix())
		messages[i] = &out.Msg
		bytes += int64(m.size())
	}
	encoding = time.Since(begun)
	begun = time.Now()
	for _, m := range messages {
		if _, err := js.PublishMsgAsync(m); err != nil {
			b.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	return encoding, time.Since(begun), bytes
}

// benchPod is a pod of 9.6 KB as JSON.
func benchPod(n int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: fmt.Sprint("pod-", n), UID: "0c8a9d3e-52f4-4e0c-8b0e-2f1d4f7a9b10", ResourceVersion: fmt.Sprint(n + 1),
		Labels: map[string]string{"app": "web", "pod-template-hash": "6d4cf56db6"}, Annotations: map[string]string{},
	}}
	for i := range 33 {
		p.Annotations[fmt.Sprint("example.org/annotation-", i)] = "some value that is as long as values are"
	}
	for c := range 4 {
		container := corev1.Container{Name: fmt.Sprint("container-", c), Image: "registry.example/team/image:v1.2.3", Args: []string{"--listen=:8080", "--level=info"}}
		for e := range 20 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", e), Value: "a value of thirty characters..."})
		}
		p.Spec.Containers = append(p.Spec.Containers, container)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name, Image: container.Image, Ready: true, ContainerID: strings.Repeat("c", 64), ImageID: strings.Repeat("d", 64)})
	}
	return p
}
