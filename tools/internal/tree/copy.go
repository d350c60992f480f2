// Package tree copies the repository for tools that change it.
package tree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Copy copies the files of the working directory that git knows, or would add, without
// the workspace.
func Copy(dir string) error {
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSuffix(name, "\n")
		if name == "go.work" || name == "go.work.sum" {
			continue
		}
		content, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // deleted and not yet committed
		}
		if err != nil {
			return err
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(to, content, 0o666); err != nil {
			return err
		}
	}
	return nil
}
