package sqlite

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"
)

// badDisk is a file system that can be full, fail, and lose its power. What was
// not synced before that may be there or not, by sectors.
type badDisk struct {
	vfs.VFSFilename

	mu sync.Mutex
	// durable has the content of each file at its last sync.
	durable map[string][]byte
	// fail is asked before each write and sync.
	fail func(op, name string) error
}

func newBadDisk(t testing.TB) (*badDisk, Options) {
	d := &badDisk{VFSFilename: vfs.Find("").(vfs.VFSFilename), durable: map[string][]byte{}}
	name := "bad-disk-" + t.Name()
	vfs.Register(name, d)
	t.Cleanup(func() { vfs.Unregister(name) })
	return d, Options{vfs: name, Logger: quiet}
}

func (d *badDisk) failing(fail func(op, name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = fail
}

// forget forgets all files.
func (d *badDisk) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.durable)
}

func (d *badDisk) check(op, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail == nil {
		return nil
	}
	return d.fail(op, name)
}

func (d *badDisk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := d.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	return &badFile{file, d, name.String()}, flags, nil
}

type badFile struct {
	vfs.File
	disk *badDisk
	name string
}

func (f *badFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.disk.check("write", f.name); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, at)
}

func (f *badFile) Truncate(size int64) error {
	if err := f.disk.check("truncate", f.name); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *badFile) Sync(flags vfs.SyncFlag) error {
	if err := f.disk.check("sync", f.name); err != nil {
		return err
	}
	if err := f.File.Sync(flags); err != nil {
		return err
	}
	raw, err := os.ReadFile(f.name)
	if err != nil {
		return err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.durable[f.name] = raw
	return nil
}

func (f *badFile) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

var _ vfs.FileSharedMemory = (*badFile)(nil)

// powerLoss writes to another directory what the disk may hold after the power
// went: of each sector that was not synced the old or the new content, of each file
// the old or the new length.
func (d *badDisk) powerLoss(t testing.TB, from, to string, random *rand.Rand) {
	t.Helper()
	must(t, os.Mkdir(to, 0o700))
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, suffix := range []string{"", "-wal"} {
		name := filepath.Join(from, fileName+suffix)
		now, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		then := d.durable[name]
		size := max(len(now), len(then))
		switch random.IntN(3) {
		case 0:
			size = len(now)
		case 1:
			size = max(len(then), min(len(now), len(then)+512*random.IntN(64)))
		}
		left := make([]byte, size)
		copy(left, then)
		lost := random.IntN(4) // from none to nearly all
		for at := 0; at < min(size, len(now)); at += 512 {
			end := min(at+512, len(now), size)
			if same := end <= len(then) && bytes.Equal(now[at:end], then[at:end]); same || random.IntN(4) >= lost {
				copy(left[at:end], now[at:end])
			}
		}
		must(t, os.WriteFile(filepath.Join(to, fileName+suffix), left, 0o600))
	}
}
