package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tarnproject/tarn/tools/internal/tree"
)

// Our modules, and the placeholder by which a module that is replaced is required.
const (
	library     = "github.com/tarnproject/tarn"
	ctrlcache   = library + "/ctrlcache"
	relay       = library + "/relay"
	placeholder = "v0.0.0-00010101000000-000000000000"
)

// olderTag leaves out of our tree what client-go 0.36 does not have.
const olderTag = "tarn_client_go_0_36"

// pinned are the modules that have the version of client-go.
var pinned = []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/apiextensions-apiserver"}

// module is a project in a scratch directory.
type module struct {
	project
	// ctx ends with the tool.
	ctx context.Context
	// tree is the root of our repository, or of a copy for an older client-go, and dir
	// that of the project.
	tree, dir string
	runs      int
	ciOnly    bool
}

// command is the go command in a directory, with the settings for other people's tests.
func (m *module) command(dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false",
		"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=5m") // of envtest; a busy machine needs more than its minute
	return cmd
}

// output runs a command, and returns what it printed. The error has all of it.
func output(cmd *exec.Cmd) ([]byte, error) {
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out, fmt.Errorf("%s: %w: %s%s", strings.Join(cmd.Args, " "), err, exit.Stderr, out)
	}
	return out, err
}

// prepare makes the copy and lets it require our tree.
func (m *module) prepare() error {
	from, err := m.download()
	if err != nil {
		return err
	}
	if err := copyModule(from, m.dir); err != nil {
		return err
	}
	return m.require()
}

// require lets the copy require our tree.
func (m *module) require() error {
	edit := []string{"mod", "edit"}
	if m.clientGo != "" {
		if err := m.olderTree(); err != nil {
			return err
		}
		staging, err := m.staging()
		if err != nil {
			return err
		}
		edit = append(edit, replaceAll(append(staging, pinned...), m.clientGo)...)
	}
	for _, sibling := range []struct{ path, dir string }{{library, "."}, {ctrlcache, "ctrlcache"}, {relay, "relay"}} {
		edit = append(edit, "-require", sibling.path+"@"+placeholder, "-replace", sibling.path+"="+filepath.Join(m.tree, sibling.dir))
	}
	if _, err := output(m.command(m.dir, edit...)); err != nil {
		return err
	}
	if err := m.addSums(); err != nil {
		return err
	}
	// The go command reads our go.mod only when a package of ours is loaded, and writes
	// the versions that follow into the project's. Without this, the run with theirs
	// would have the project's own versions, and only the run with ours would have ours.
	_, err := output(m.command(m.dir, "list", library+"/cache"))
	return err
}

// replaceAll are the flags of go mod edit that set a version, whatever is required.
func replaceAll(paths []string, version string) (flags []string) {
	for _, path := range paths {
		flags = append(flags, "-replace", path+"="+path+"@"+version)
	}
	return flags
}

// staging returns the modules that the project takes from its own repository. They are
// not in the module: they are published separately.
func (m *module) staging() (paths []string, err error) {
	out, err := output(m.command(m.dir, "mod", "edit", "-json"))
	if err != nil {
		return nil, err
	}
	var file struct {
		Replace []struct{ Old, New struct{ Path string } }
	}
	if err := json.Unmarshal(out, &file); err != nil {
		return nil, err
	}
	for _, r := range file.Replace {
		if strings.HasPrefix(r.New.Path, "./staging/") {
			paths = append(paths, r.Old.Path)
		}
	}
	return paths, nil
}

// olderTree makes a copy of our tree for an older client-go, as the tool matrix does: the
// table of package informers is generated anew.
func (m *module) olderTree() error {
	m.tree = m.dir + "-tree"
	if err := tree.Copy(m.tree); err != nil {
		return err
	}
	if _, err := output(m.command(m.tree, append([]string{"mod", "edit"}, replaceAll(pinned, m.clientGo)...)...)); err != nil {
		return err
	}
	_, err := output(m.command(filepath.Join(m.tree, "informers"), "run", "-tags", olderTag, "generate.go"))
	return err
}

// addSums adds our checksums to the project's, so that the checksum database is asked
// for fewer.
func (m *module) addSums() error {
	sums, err := os.OpenFile(filepath.Join(m.dir, "go.sum"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	for _, name := range []string{"go.sum", "ctrlcache/go.sum", "relay/go.sum"} {
		ours, err := os.ReadFile(filepath.Join(m.tree, name))
		if err != nil {
			return errors.Join(err, sums.Close())
		}
		if _, err := sums.Write(ours); err != nil {
			return errors.Join(err, sums.Close())
		}
	}
	return sums.Close()
}

// download returns the directory of the module in the module cache.
func (m *module) download() (string, error) {
	cmd := m.command(os.TempDir(), "mod", "download", "-json", m.path+"@"+m.version)
	out, err := cmd.Output()
	var found struct{ Dir, Error string }
	if wrong := json.Unmarshal(out, &found); wrong != nil {
		return "", errors.Join(fmt.Errorf("%s@%s cannot be downloaded", m.path, m.version), err, wrong)
	}
	if found.Error != "" {
		return "", fmt.Errorf("%s@%s cannot be downloaded: %s", m.path, m.version, found.Error)
	}
	return found.Dir, err
}

// copyModule copies a module out of the module cache, where nothing can be written.
func copyModule(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o777)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, 0o666)
	})
}
