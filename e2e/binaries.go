package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// binDirVariable names the folder that holds the programs, if they are not in
// the place where make puts them.
const binDirVariable = "TARN_E2E_BIN"

// binary finds a program that make has built. Each version has a folder of its
// own, so that changing a version builds anew; a program found twice would leave
// open which one is meant.
func binary(t testing.TB, name string) string {
	t.Helper()
	path, err := findBinary(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func findBinary(name string) (string, error) {
	dir := os.Getenv(binDirVariable)
	if dir == "" {
		dir = "bin"
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", name))
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", fmt.Errorf("no %s below %s: build it with `make e2e-build`, or name the folder in %s", name, dir, binDirVariable)
	case len(found) > 1:
		return "", fmt.Errorf("more than one %s: %v; remove the folders of old versions", name, found)
	}
	return filepath.Abs(found[0])
}
