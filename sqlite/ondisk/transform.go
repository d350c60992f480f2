package ondisk

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"sync"
)

// Transform names the copy's transform: with another name the content is built again.
// Without a name, only the same executable uses content that went through a transform,
// since another one may have another function.
func Transform(name string) Option { return func(s *settings) { s.transform = name } }

// transformName identifies a transform: by its name, or by the executable.
func transformName(name string) string {
	if name != "" {
		return "by " + name
	}
	return "by the executable " + executable()
}

// executable is a checksum of the program. If it cannot be read, the result is unique.
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
