package deploy

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
)

var image = flag.Bool("image", false, "build the program as the Dockerfile does")

// The line that builds the program in the Dockerfile makes a static program. As root, it is
// also run as the user of the image, in a root directory that has what the image has.
func TestDockerfile(t *testing.T) {
	if !*image {
		t.Skip("the build of the Dockerfile takes minutes without a cache; make image runs it")
	}
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^RUN (.* go build .*) -o /tarn (\S+)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the Dockerfile does not build the program")
	}
	root := t.TempDir()
	program := filepath.Join(root, "tarn")
	build := exec.CommandContext(t.Context(), "sh", "-c", string(line[1])+" -o "+program+" "+string(line[2]))
	build.Dir = "../cmd"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(content, []byte("/lib64/ld-linux")) {
		t.Error("the program needs a dynamic loader, which the image does not have")
	}
	run := exec.CommandContext(t.Context(), program, "version")
	if os.Geteuid() == 0 {
		run = inImage(t, text, root)
	}
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// inImage is the program in a root directory with the files that the Dockerfile copies.
func inImage(t *testing.T, dockerfile []byte, root string) *exec.Cmd {
	t.Helper()
	for _, copied := range regexp.MustCompile(`(?m)^COPY --from=build (\S+) (\S+)/$`).FindAllSubmatch(dockerfile, -1) {
		file, to := string(copied[1]), filepath.Join(root, string(copied[2]))
		content, err := os.ReadFile(file) // the image that builds has it at the same place
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	user := regexp.MustCompile(`(?m)^USER (\d+):(\d+)$`).FindSubmatch(dockerfile)
	if user == nil {
		t.Fatal("the Dockerfile names no user")
	}
	uid, _ := strconv.ParseUint(string(user[1]), 10, 32)
	gid, _ := strconv.ParseUint(string(user[2]), 10, 32)
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "/tarn", "version")
	run.Dir, run.Env = "/", []string{}
	run.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return run
}
