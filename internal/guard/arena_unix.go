//go:build unix

package guard

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// Supported says whether the system has memory that can be made read-only.
const Supported = true

// chunkSize is how much is reserved at once.
const chunkSize = 16 << 20

// pages are reserved in chunks and given out from the front.
var pages struct {
	sync.Mutex
	free []byte
}

// pageSize is that of the system.
var pageSize = os.Getpagesize()

// reserve returns writable memory that begins and ends with a page.
func reserve(size int) ([]byte, error) {
	size = (size + pageSize - 1) / pageSize * pageSize
	pages.Lock()
	defer pages.Unlock()
	if size > len(pages.free) {
		chunk, err := syscall.Mmap(-1, 0, max(size, chunkSize), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			return nil, fmt.Errorf("guard: reserving %d bytes: %w", max(size, chunkSize), err)
		}
		pages.free = chunk
	}
	memory := pages.free[:size:size]
	pages.free = pages.free[size:]
	return memory, nil
}

// protect makes memory read-only.
func protect(memory []byte) error {
	if err := syscall.Mprotect(memory, syscall.PROT_READ); err != nil {
		return fmt.Errorf("guard: making %d bytes read-only: %w", len(memory), err)
	}
	return nil
}
