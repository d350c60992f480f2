package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/jetstream"
	"github.com/tarnproject/tarn/jetstream/embedded"
	"github.com/tarnproject/tarn/kube"
)

// broker is a NATS server that commands feed.
type broker struct {
	t       *testing.T
	address string
	js      natsjs.JetStream
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	server, err := embedded.Start(embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return connectBroker(t, server.URL())
}

func connectBroker(t *testing.T, address string) *broker {
	t.Helper()
	nc, err := nats.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := natsjs.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return &broker{t, address, js}
}

// phase is that of a pod in a bucket; an error is one too.
func (b *broker) phase(bucket, key string) string {
	kv, err := b.js.KeyValue(b.t.Context(), bucket)
	if err != nil {
		return err.Error()
	}
	entry, err := kv.Get(b.t.Context(), key)
	if errors.Is(err, natsjs.ErrKeyNotFound) {
		return "gone"
	}
	if err != nil {
		return err.Error()
	}
	var pod corev1.Pod
	if err := json.Unmarshal(entry.Value(), &pod); err != nil {
		return err.Error()
	}
	return fmt.Sprint(pod.Kind, " ", pod.Status.Phase)
}

// await waits until a value is as wanted. A server has no virtual time.
func (b *broker) await(want string, value func() string) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got := value()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("it is %q, want %q", got, want)
		}
	}
}

// gaps is how many gaps a bucket has.
func (b *broker) gaps(bucket string) string {
	kv, err := b.js.KeyValue(b.t.Context(), bucket)
	if err != nil {
		return err.Error()
	}
	entry, err := kv.Get(b.t.Context(), "_tarn.checkpoint")
	if err != nil {
		return err.Error()
	}
	var c jetstream.Checkpoint
	if err := json.Unmarshal(entry.Value(), &c); err != nil {
		return err.Error()
	}
	return fmt.Sprint(c.Gaps)
}

func TestFeedNATS(t *testing.T) {
	b := newBroker(t)
	r := newRig(t, pod("web-1", corev1.PodPending), pod("web-2", corev1.PodPending), deployment("web"), secret("s", "topsecret"))
	args := []string{"pods", "deployments.apps", "-A", "--to", b.address + "?history=10", "--cluster-name", "prod-1", "--interval", "100ms"}

	first := r.feed(args...)
	b.await("Pod Pending", func() string { return b.phase("prod-1_pods", "default.web-1") })
	b.await("Deployment ", func() string { return b.phase("prod-1_deployments_apps", "default.web") })
	first.says("; jetstream at version ")
	r.put(pod("web-1", corev1.PodRunning))
	r.delete(pod("web-2", ""))
	b.await("Pod Running", func() string { return b.phase("prod-1_pods", "default.web-1") })
	b.await("gone", func() string { return b.phase("prod-1_pods", "default.web-2") })

	second := r.feed(append(args, "--metrics", "127.0.0.1:0")...)
	second.says("another feeder writes it")
	probes := regexp.MustCompile(`Metrics at (\S+)/metrics`).FindStringSubmatch(second.out.String())[1]
	awaitAnswer(t, probes+"/readyz", http.StatusServiceUnavailable, "another feeder writes it")
	awaitAnswer(t, probes+"/livez", http.StatusOK, "ok")
	if strings.Contains(second.out.String(), "Feeding") {
		t.Errorf("the second does not wait:\n%s", second.out.String())
	}
	first.stop()
	second.says("Feeding")
	second.stop()

	// What happens while nobody feeds is not lost: the watch resumes.
	r.put(pod("web-1", corev1.PodFailed))
	r.put(pod("web-1", corev1.PodSucceeded))
	third := r.feed(args...)
	third.says("from jetstream")
	b.await("Pod Succeeded", func() string { return b.phase("prod-1_pods", "default.web-1") })
	third.stop()
	kv, err := b.js.KeyValue(t.Context(), "prod-1_pods")
	if err != nil {
		t.Fatal(err)
	}
	history, err := kv.History(t.Context(), "default.web-1")
	if err != nil {
		t.Fatal(err)
	}
	var phases []string
	for _, entry := range history {
		var pod corev1.Pod
		if err := json.Unmarshal(entry.Value(), &pod); err != nil {
			t.Fatal(err)
		}
		phases = append(phases, string(pod.Status.Phase))
	}
	if have := strings.Join(phases, " "); have != "Pending Running Failed Succeeded" {
		t.Errorf("the history is %s", have)
	}
	if n := b.gaps("prod-1_pods"); n != "0" {
		t.Errorf("there are %s gaps", n)
	}
}

// The server that comes with the command keeps what it has when the command is started again.
func TestFeedOwnNATS(t *testing.T) {
	r := newRig(t, pod("web-1", corev1.PodPending))
	dir := t.TempDir()
	for _, phase := range []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded} {
		r.put(pod("web-1", phase))
		f := r.feed("pods", "-A", "--to", "nats", "--nats-dir", dir, "--nats-listen", "127.0.0.1:0", "--history")
		f.says("Feeding nats://")
		_, rest, _ := strings.Cut(f.out.String(), "Feeding ")
		address, _, _ := strings.Cut(rest, ",")
		b := connectBroker(t, address)
		b.await(string(phase), func() string {
			stream, err := b.js.Stream(t.Context(), "default_pods")
			if err != nil {
				return err.Error()
			}
			message, err := stream.GetLastMsgForSubject(t.Context(), "default_pods.default.web-1")
			if err != nil {
				return err.Error()
			}
			var pod corev1.Pod
			if err := json.Unmarshal(message.Data, &pod); err != nil {
				return err.Error()
			}
			return string(pod.Status.Phase)
		})
		if err := r.run("feed", "pods", "-A", "--to", "nats", "--nats-dir", dir, "--nats-listen", "127.0.0.1:0").check(exitFailed, "another server has its streams in "+dir); err != nil {
			t.Error(err)
		}
		f.stop()
	}
}

func TestFeedNATSMistakes(t *testing.T) {
	r := newRig(t)
	for args, words := range map[string][]string{
		"feed pods --to nats":                               {"--nats-dir", "nats://host:4222"},
		"feed pods --to nats://":                            {"nats://host:4222"},
		"feed pods --to nats://u:secret@h?history=many":     {"history=many"},
		"feed pods --to nats://h?sync=always":               {"sync is not known", "replicas=N"},
		"feed pods --to nats://h?history=2 --history":       {"history=N"},
		"feed pods --to nats://h --cluster-name prod.eu":    {"--cluster-name", "letters"},
		"feed pods --to nats --nats-dir x --nats-listen me": {"me"},
	} {
		got := r.run(strings.Fields(args)...)
		if got.code == 0 || strings.Contains(got.err, "secret") {
			t.Errorf("%s: %d, %s", args, got.code, got.err)
		}
		for _, word := range words {
			if !strings.Contains(got.err, word) {
				t.Errorf("%s: %q is not in %s", args, word, got.err)
			}
		}
	}
}

// A claim that is made again, because the mirror of the first one could not be started, does
// not wait for itself.
func TestNATSClaimAgain(t *testing.T) {
	to, err := openNATS(&feedOptions{clusterName: "default", to: newBroker(t).address})
	if err != nil {
		t.Fatal(err)
	}
	defer to.close()
	pods := mirror.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}
	for range 2 {
		if err := to.claim(t.Context(), []mirror.Resource{pods}); err != nil {
			t.Fatal(err)
		}
		if _, err := to.sink(kube.Origin{Resource: pods.GVR}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// A process that waits says so once, however often it detects the one that feeds.
func TestNATSWaitingIsSaidOnce(t *testing.T) {
	b := newBroker(t)
	feeds, err := jetstream.New(b.js, jetstream.Bucket{Name: "default_pods", Lease: 300 * time.Millisecond}, jetstream.Objects[mirror.Object]())
	if err != nil {
		t.Fatal(err)
	}
	defer feeds.Close()
	if err := feeds.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	to, err := openNATS(&feedOptions{clusterName: "default", to: b.address})
	if err != nil {
		t.Fatal(err)
	}
	defer to.close()
	claim := func() string {
		err := to.claim(t.Context(), []mirror.Resource{{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}})
		if !errors.Is(err, jetstream.ErrFed) {
			t.Fatal(err)
		}
		return err.Error()
	}
	first := claim()
	second := claim()
	for deadline := time.Now().Add(time.Minute); second == first; second = claim() {
		if time.Now().After(deadline) {
			t.Fatal("it hears nothing of the one that feeds")
		}
	}
	if summary(first) != summary(second) {
		t.Errorf("it says\n%s\nand then\n%s", first, second)
	}
}
