package cli

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/apiserver"
)

// The program, in its own process, ends normally on Ctrl-C.
func TestCtrlC(t *testing.T) {
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := server.Put(pod("web-1", corev1.PodRunning)); err != nil {
		t.Fatal(err)
	}
	config, err := server.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config")
	write(t, file, string(config))
	program := exec.Command(os.Args[0], "watch", "pods", "--kubeconfig", file)
	program.Env = append(os.Environ(), asProgram+"=1")
	var complaint strings.Builder
	program.Stderr = &complaint
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "ADDED    pods/default/web-1 READY=0/1 STATUS=Running") {
		t.Errorf("the first line is %q (%v)", line, err)
	}
	if err := program.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil || complaint.String() != "" {
		t.Errorf("it ended with %v and %q", err, complaint.String())
	}
}
