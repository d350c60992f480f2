package ondisk

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"sync"
)

// Transform names what the copy's transform does: another name means that the
// content is built anew. Without one, content that went through a transform is
// trusted only by the very executable that wrote it, since nobody can tell whether
// the function still does the same.
func Transform(name string) Option { return func(s *settings) { s.transform = name } }

// transformName tells one transform from another: by its name, or by the program
// that it is part of.
func transformName(name string) string {
	if name != "" {
		return "by " + name
	}
	return "by the executable " + executable()
}

// executable is a checksum of the program. One that cannot be read is unlike all
// others.
var executable = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return rand.Text()
	}
	file, err := os.Open(path)
	if err != nil {
		return rand.Text()
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return rand.Text()
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
})
