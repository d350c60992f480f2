package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The informer of the JavaScript client, which knows nothing of Tarn, follows pods through
// a relay, and stays right when its relay is cut off.
func TestRelayJavaScript(t *testing.T) {
	onEach(t, 50, func(s *testEnv) {
		program := installJavaScript(s.T)
		s.throughRelay(s.server.Config(AdminToken))
		client := startJavaScript(s.T, program, s.server.writeKubeconfig(s.TempDir()))
		s.followsIn(client)
		churn := s.server.StartChurn(namespace)
		s.server.WaitWrites(churn, 200)
		s.server.(*Relayed).listener.resetAll()
		s.server.WaitWrites(churn, 200)
		s.settle(churn)
		s.followsIn(client)
		s.Logf("its view was right after %d lists", client.view().Lists)
	})
}

// followsIn waits until the client has what the server has.
func (s *testEnv) followsIn(client *javaScript) {
	s.Helper()
	err := eventually(s.T, time.Minute, func() error {
		list, err := s.server.Admin().CoreV1().Pods(namespace).List(s.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		want := map[string]string{}
		for i := range list.Items {
			want[list.Items[i].Name] = list.Items[i].ResourceVersion
		}
		if have := client.view(); !maps.Equal(have.Pods, want) {
			return fmt.Errorf("it has %d pods, which are not the %d of the server; it says %q", len(have.Pods), len(want), client.complaints.String())
		}
		return nil
	})
	if err != nil {
		s.Error(err)
	}
}

// installJavaScript fetches the client, at the versions that are written down, and returns
// the program that uses it.
func installJavaScript(t *testing.T) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("needs Node.js and npm")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "informer.js"} {
		content, err := os.ReadFile(filepath.Join("javascript", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	install.Dir = dir
	if output, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, output)
	}
	return filepath.Join(dir, "informer.js")
}

// javaScript is a client that runs in a process of its own.
type javaScript struct {
	complaints *transcript

	mu   sync.Mutex
	last javaScriptView
}

// javaScriptView is what it has: versions by name.
type javaScriptView struct {
	Lists int
	Pods  map[string]string
}

func (j *javaScript) view() javaScriptView {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

func startJavaScript(t *testing.T, program, kubeconfig string) *javaScript {
	t.Helper()
	command := exec.Command("node", program, kubeconfig, namespace)
	j := &javaScript{complaints: &transcript{}}
	command.Stderr = j.complaints
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { j.read(t, out) })
	t.Cleanup(func() {
		_ = in.Close() // it ends then
		reading.Wait()
		_ = command.Wait()
	})
	return j
}

func (j *javaScript) read(t *testing.T, out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v javaScriptView
		if err := json.NewDecoder(bytes.NewReader(lines.Bytes())).Decode(&v); err != nil {
			t.Errorf("the client printed %q: %v", lines.Text(), err)
			continue
		}
		j.mu.Lock()
		j.last = v
		j.mu.Unlock()
	}
}
