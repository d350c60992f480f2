package e2e

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
)

const quickRelayBench = "-pods 100 -watchers 5 -updates 20 -loaded 5 -crowd 20 -nodes 20 -initial 2"

var relayBench = flag.String("bench.relay", quickRelayBench, "the flags of the benchmark of a relay on the real server")

// TestRelayBenchmark measures the program's relay beside the real server, each in a process
// of its own. With few pods it proves that this can be measured; `make bench-relay` measures
// with many, for the figures.
func TestRelayBenchmark(t *testing.T) {
	if testing.Short() {
		t.Skip("the real server is left out with -short")
	}
	cluster := Start(t, Options{})
	relay := startRelayProgram(t, cluster, fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0]), "configmaps", "--caller-watches", "20000", "--pprof")
	defer func() { t.Logf("the relay said:\n%s", relay.end()) }()
	args := []string{"-origin", cluster.kubeconfig, "-origin-pid", strconv.Itoa(cluster.apiserver.cmd.Process.Pid), "-relay", relay.writeKubeconfig(t.TempDir()), "-relay-pid", strconv.Itoa(relay.pid), "-relay-pprof", "http://" + relay.metrics}
	output := runBenchmark(t, "./relay", append(args, strings.Fields(*relayBench)...)...)
	if whole := strings.Count(output, "100.0 % delivered, 0 closed"); *relayBench == quickRelayBench && whole == 0 {
		t.Error("nothing was delivered in full")
	}
}

// RelayProgram is tarn relay in a process of its own, behind TLS.
type RelayProgram struct {
	*Endpoint
	*Running
	// metrics is the address of --metrics.
	metrics string
}

// startRelayProgram starts tarn relay of pods in front of a cluster, and waits until it has
// its copies. args are further ones.
func startRelayProgram(t *testing.T, cluster *Cluster, address string, args ...string) *RelayProgram {
	t.Helper()
	authority, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, private := filepath.Join(dir, "relay.crt"), filepath.Join(dir, "relay.key")
	for path, content := range map[string][]byte{certificate: authority, private: key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &RelayProgram{metrics: fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0])}
	r.Running = buildProgram(t, cluster.kubeconfig).start(append([]string{"relay", "pods", "--listen", address,
		"--tls-cert-file", certificate, "--tls-private-key-file", private, "--metrics", r.metrics}, args...)...)
	r.await("Synced ")
	r.Endpoint = newEndpoint(t, address, authority)
	return r
}
