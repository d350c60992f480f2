package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
)

// profile writes a CPU profile of what happens until the returned function is
// called, if there is a folder for profiles. Taking it costs every contender a
// few percent.
func profile(folder, contender, phase string) (end func()) {
	file := profileFile(folder, contender, phase+".cpu")
	if file == nil {
		return func() {}
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		fmt.Fprintln(os.Stderr, "no profile:", err)
	}
	return func() {
		pprof.StopCPUProfile()
		file.Close()
	}
}

// heapProfile writes a heap profile, if there is a folder for profiles.
func heapProfile(folder, contender string) {
	if file := profileFile(folder, contender, "heap"); file != nil {
		defer file.Close()
		pprof.Lookup("heap").WriteTo(file, 0)
	}
}

func profileFile(folder, contender, what string) *os.File {
	if folder == "" {
		return nil
	}
	name := strings.ReplaceAll(contender, " ", "-") + "." + what + ".pprof"
	file, err := os.Create(filepath.Join(folder, name))
	if err != nil {
		fmt.Fprintln(os.Stderr, "no profile:", err)
		return nil
	}
	return file
}
