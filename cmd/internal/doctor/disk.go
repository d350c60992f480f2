package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tarnproject/tarn/sqlite"
)

const checkDirectory = "directory"

// littleSpace is the smallest free space that is enough for a copy, whose size is unknown
// before it is made. A copy of 10,000 pods takes some 20 MB.
const littleSpace = 256 << 20

// Disk checks a directory that keeps a copy, or will keep one.
func (d *Doctor) Disk(ctx context.Context, dir string) {
	var found sqlite.Inspection
	d.Check(ctx, checkDirectory, nil, func(ctx context.Context) Result {
		var err error
		if found, err = sqlite.Inspect(ctx, dir); err != nil {
			return fail("check the path and who may read it", "%s", text(cause(ctx, err)))
		}
		return usable(dir, found)
	})
	d.Check(ctx, "lock", []string{checkDirectory}, func(context.Context) Result {
		switch {
		case !found.Exists:
			return skip("there is no directory yet")
		case found.InUse:
			return fail("end the mirror that keeps it, or name another directory; reading it with --from is possible meanwhile", "another process has %s open", dir)
		}
		return ok("no process has it open")
	})
	d.Check(ctx, "format", []string{checkDirectory}, func(context.Context) Result { return readable(found) })
	d.Check(ctx, "space", nil, func(context.Context) Result { return roomy(dir, found) })
}

// usable reports whether this process can write a directory.
func usable(dir string, found sqlite.Inspection) Result {
	if found.Refused != nil {
		why, advice, _ := strings.Cut(text(found.Refused), ": ")
		return fail(advice, "%s", why)
	}
	if !found.Exists {
		above := existing(dir)
		if !writable(above) {
			return fail("name a directory below one that you may write to", "%s does not exist, and %s cannot be written to", dir, above)
		}
		return ok("%s does not exist; it is made, with mode 0700", dir)
	}
	if !writable(dir) {
		return fail("chmod u+rwx it, or name another directory", "%s cannot be written to (mode %04o)", dir, found.Mode)
	}
	return ok("%s is ours (mode %04o)", dir, found.Mode)
}

// text is an error without the name of the package that returned it.
func text(err error) string { return strings.TrimPrefix(err.Error(), "sqlite: ") }

// existing returns the nearest existing directory on a path.
func existing(dir string) string {
	dir = filepath.Clean(dir)
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func readable(found sqlite.Inspection) Result {
	switch {
	case found.Unreadable != nil:
		return warn("\"tarn check\" shows more; a mirror rebuilds a damaged file, and refuses a file of another program", "the file cannot be read: %s", text(found.Unreadable))
	case found.Format == 0:
		return ok("there is no file yet; format %d is written", found.Reads)
	case found.Format > found.Reads:
		return fail("use the newer Tarn, or name another directory", "format %d, written by a newer Tarn; this one reads %d", found.Format, found.Reads)
	case found.Converts:
		return warn("nothing to do: the next mirror converts the file and keeps its content", "format %d is older than the current one, %d", found.Format, found.Reads)
	case found.Format < found.Reads:
		return warn("nothing to do: the next mirror rebuilds the file from the server", "format %d is older than the current one, %d", found.Format, found.Reads)
	}
	return ok("format %d, the current one", found.Format)
}

// roomy compares the free space with the size of a copy. A file that is built again is
// written before the old one is removed.
func roomy(dir string, found sqlite.Inspection) Result {
	free, known := freeSpace(existing(dir))
	if !known {
		return skip("the free space is unknown on this system")
	}
	needed := max(littleSpace, uint64(found.Bytes)*2)
	said := fmt.Sprintf("%s free", megabytes(free))
	if found.Bytes > 0 {
		said += fmt.Sprintf(", the copy takes %s", megabytes(uint64(found.Bytes)))
	}
	if free < needed {
		return warn(fmt.Sprintf("make room: %s is enough", megabytes(needed)), "%s", said)
	}
	return ok("%s", said)
}

func megabytes(n uint64) string { return fmt.Sprintf("%d MiB", n>>20) }
