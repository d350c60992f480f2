package cache

import (
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// plumbing are the packages between a reflector and its user, by the prefix of
// their functions' names. Names of functions and not of files are compared, because
// where a module lies on disk says nothing.
var plumbing = []string{
	"github.com/tarnproject/tarn/cache.",
	"github.com/tarnproject/tarn/informers.",
	"github.com/tarnproject/tarn/informers/",
	"k8s.io/client-go/tools/cache.",
	"k8s.io/client-go/informers",
}

// callerName names a reflector after the code that made it: the nearest caller
// outside of the plumbing, as dir/dir/file.go:line.
func callerName() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if frame.Function != "" && !isPlumbing(frame.Function) {
			return fmt.Sprintf("%s:%d", lastElements(filepath.ToSlash(frame.File), 3), frame.Line)
		}
		if !more {
			return "unknown caller"
		}
	}
}

func isPlumbing(function string) bool {
	for _, prefix := range plumbing {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}

func lastElements(file string, n int) string {
	parts := strings.Split(file, "/")
	return path.Join(parts[max(0, len(parts)-n):]...)
}
