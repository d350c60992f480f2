package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// binVariable names the folders that hold the programs, as PATH does. `make e2e` sets
// it.
const binVariable = "TARN_E2E_BIN"

// binary finds a program that make has built.
func binary(t testing.TB, name string) string {
	t.Helper()
	path, err := findBinary(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func findBinary(name string) (string, error) {
	folders := os.Getenv(binVariable)
	for _, folder := range filepath.SplitList(folders) {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return filepath.Abs(path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("no %s in %q: run the tests by `make e2e`, which builds it, or name the folders in %s", name, folders, binVariable)
}
