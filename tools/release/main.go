// Command release packs a module as a module proxy serves it:
//
//	release PATH VERSION DIRECTORY PROXY
//
// It writes what the go command asks a proxy for (list, info, mod and zip) below PROXY,
// which GOPROXY can name as file://PROXY.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: release PATH VERSION DIRECTORY PROXY")
		os.Exit(2)
	}
	if err := pack(module.Version{Path: os.Args[1], Version: os.Args[2]}, os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintf(os.Stderr, "packing %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// pack writes the module that lies in dir.
func pack(m module.Version, dir, proxy string) error {
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	versions := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	packed, err := os.Create(filepath.Join(versions, m.Version+".zip"))
	if err != nil {
		return err
	}
	if err := errors.Join(zip.CreateFromDir(packed, m, dir), packed.Close()); err != nil {
		return err
	}
	info := fmt.Sprintf("{\"Version\":%q,\"Time\":%q}\n", m.Version, time.Now().UTC().Format(time.RFC3339))
	return errors.Join(
		os.WriteFile(filepath.Join(versions, m.Version+".mod"), mod, 0o644),
		os.WriteFile(filepath.Join(versions, m.Version+".info"), []byte(info), 0o644),
		os.WriteFile(filepath.Join(versions, "list"), []byte(m.Version+"\n"), 0o644),
	)
}
