package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// kubectl prints the same through a relay as from the server, and what it writes arrives:
// reads from the copy, tables, discovery, writes, waits, and what ends at kubelets, of
// which there are none, so that the server's words are what both get.
func TestRelayKubectl(t *testing.T) {
	onReal(t, 20, func(s *testEnv) {
		relayed := startRelay(s.T, s.server.Config(AdminToken))
		direct, through := kubectl{s.T, s.server.writeKubeconfig(s.TempDir())}, kubectl{s.T, relayed.writeKubeconfig(s.TempDir())}

		manifest := filepath.Join(s.TempDir(), "pod.yaml")
		pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: applied, namespace: stage, labels: {app: applied}}\nspec:\n  nodeName: node-1\n  containers: [{name: main, image: example.com/app}]\n"
		if err := os.WriteFile(manifest, []byte(pod), 0o600); err != nil {
			s.Fatal(err)
		}
		watched := through.start("get", "pods", "-n", namespace, "-l", "app=applied", "-w", "--no-headers")
		if got := through.run("apply", "-f", manifest); got != "pod/applied created\n" {
			s.Errorf("apply: %s", got)
		}
		if got := through.run("wait", "-n", namespace, "pod/applied", "--for=condition=Ready", "--timeout=60s"); got != "pod/applied condition met\n" {
			s.Errorf("wait: %s", got)
		}
		if got := through.run("annotate", "-n", namespace, "pod/applied", "through=relay"); got != "pod/applied annotated\n" {
			s.Errorf("annotate: %s", got)
		}
		watched.await("applied", "Running")
		s.server.Settle(namespace)

		for _, line := range []string{
			"get pods -n stage --sort-by=.metadata.name",
			"get pods -A -o wide -l app=applied",
			"get pods -n stage --field-selector spec.nodeName=node-1 -o name",
			"get pod -n stage applied -o yaml",
			"get pods -n stage -o json --chunk-size=7",
			"get pods -n stage --watch-only=false -o custom-columns=NAME:.metadata.name,VERSION:.metadata.resourceVersion",
			"get pods -n nowhere",
			"get pod -n stage missing",
			"get namespaces -o name",
			"describe pod -n stage applied",
			"api-resources --api-group=apps -o name",
			"explain pod.spec.nodeName",
			"auth can-i list pods -n stage",
			"logs -n stage applied",
			"exec -n stage applied -- true",
			"port-forward -n stage pod/applied 0:80",
		} {
			args := strings.Fields(line)
			want, got := direct.run(args...), through.run(args...)
			if ages(want) != ages(got) {
				s.Errorf("kubectl %s: through the relay\n%s\nand directly\n%s", line, got, want)
			}
		}
		if got := through.run("delete", "-n", namespace, "pod/applied", "--now"); !strings.Contains(got, `pod "applied" deleted`) {
			s.Errorf("delete: %s", got)
		}
		watched.await("Terminating")
		watched.end()
	})
}

// ages takes the column of ages, and what names a connection, off: they change while one
// looks.
func ages(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		var words []string
		for word := range strings.FieldsSeq(line) {
			if _, err := time.ParseDuration(strings.TrimSuffix(word, ":")); err != nil && !strings.Contains(word, "->") {
				words = append(words, word)
			}
		}
		kept = append(kept, strings.Join(words, " "))
	}
	return strings.Join(kept, "\n")
}

// kubectl runs kubectl with a kubeconfig.
type kubectl struct {
	t          *testing.T
	kubeconfig string
}

func (k kubectl) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, binary(k.t, "kubectl"), append([]string{
		"--kubeconfig=" + k.kubeconfig, "--cache-dir=" + filepath.Join(filepath.Dir(k.kubeconfig), "cache"),
	}, args...)...)
}

// run returns what a command printed, complaints included.
func (k kubectl) run(args ...string) string {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	var said bytes.Buffer
	command := k.command(ctx, args...)
	command.Stdout, command.Stderr = &said, &said
	_ = command.Run() // says itself what is wrong
	return said.String()
}

// runningKubectl is a command that runs until end.
type runningKubectl struct {
	t    *testing.T
	said *transcript
	end  func()
}

func (k kubectl) start(args ...string) runningKubectl {
	k.t.Helper()
	ctx, cancel := context.WithCancel(k.t.Context())
	said := &transcript{}
	command := k.command(ctx, args...)
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		k.t.Fatal(err)
	}
	return runningKubectl{k.t, said, func() {
		cancel()
		_ = command.Wait() // it was killed
	}}
}

// await waits until all words have been printed on one line.
func (r runningKubectl) await(words ...string) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		for line := range strings.Lines(r.said.String()) {
			found := 0
			for _, word := range words {
				if strings.Contains(line, word) {
					found++
				}
			}
			if found == len(words) {
				return
			}
		}
		if time.Now().After(deadline) {
			r.t.Errorf("kubectl does not print %q but\n%s", words, r.said)
			return
		}
	}
}
