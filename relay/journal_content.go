package relay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// contentFile is a file with all objects at a place: blocks as in a log, whose events are
// additions. The last block has none.
type contentFile struct {
	path  string
	place int
	size  int64
}

const (
	contentPrefix = "content-"
	// contentBlock is how many objects are in a block, contentBytes how many bytes they have
	// together, unless one alone has more.
	contentBlock = 256
	contentBytes = 16 << 20
	// contentSpacing is how many bytes of logs are between two contents that are kept, for
	// each byte of a content. It trades the size of the directory, a quarter more at most,
	// for the time that a list at an old version takes.
	contentSpacing = 4
)

func (c contentFile) remove() { _ = os.Remove(c.path) }

// newest returns the content that a start reads.
func (j *journal) newest() (contentFile, bool) {
	if n := len(j.contents); n > 0 {
		return j.contents[n-1], true
	}
	return contentFile{}, false
}

// thin removes the content before the newest one if it is too close to the one before it,
// or to the beginning.
func (j *journal) thin() {
	n := len(j.contents) - 2
	if n < 0 {
		return
	}
	c, from := j.contents[n], j.logs[0].first
	if n > 0 {
		from = j.contents[n-1].place
	}
	if j.bytesBetween(from, c.place) < max(contentSpacing*c.size, j.logSize) {
		c.remove()
		j.contents = slices.Delete(j.contents, n, n+1)
	}
}

// dropContents removes the contents before the logs, except for the newest one.
func (j *journal) dropContents() {
	for len(j.contents) > 1 && (len(j.logs) == 0 || j.contents[0].place < j.logs[0].first) {
		j.contents[0].remove()
		j.contents = j.contents[1:]
	}
}

// contentAfter returns the first content at or after a place.
func (j *journal) contentAfter(place int) (contentFile, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.IndexFunc(j.contents, func(c contentFile) bool { return c.place >= place })
	if i < 0 {
		return contentFile{}, false
	}
	return j.contents[i], true
}

// writeContent writes a content under another name first: a file that has its own name is
// complete and on the disk.
func (j *journal) writeContent(place int, position tarn.Position, contact time.Time, objects []*apiserver.Object) (contentFile, error) {
	c := contentFile{path: filepath.Join(j.dir, fmt.Sprintf("%s%020d", contentPrefix, place)), place: place}
	file, err := os.OpenFile(c.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return c, err
	}
	out := bufio.NewWriterSize(file, 1<<20)
	for part := range contentParts(objects, min(contentBytes, j.block/2)) {
		block := &chunk{position: position, contact: contact}
		for _, o := range part {
			block.events = append(block.events, &apiserver.Event{Type: watch.Added, Version: o.Version(), Heard: contact, Object: o})
		}
		err = errors.Join(err, c.write(out, j, block))
	}
	err = errors.Join(err, c.write(out, j, &chunk{position: position, contact: contact}), out.Flush(), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(c.path+".new", c.path)
	}
	if err != nil {
		_ = os.Remove(c.path + ".new") // the disk may be full
	}
	return c, err
}

// contentParts divides objects into those of one block each.
func contentParts(objects []*apiserver.Object, most int) iter.Seq[[]*apiserver.Object] {
	return func(yield func([]*apiserver.Object) bool) {
		from, bytes := 0, 0
		for i, o := range objects {
			if i > from && (i-from == contentBlock || bytes+len(o.Bytes()) > most) {
				if !yield(objects[from:i]) {
					return
				}
				from, bytes = i, 0
			}
			bytes += len(o.Bytes())
		}
		if from < len(objects) {
			yield(objects[from:])
		}
	}
}

func (c *contentFile) write(out io.Writer, j *journal, block *chunk) error {
	data, ok := j.encode(block)
	if !ok {
		return fmt.Errorf("an object of more than %d bytes cannot be kept", j.block/2)
	}
	b := journalBlock{first: c.place, count: len(block.events), to: versionOf(block.position.Version), heard: block.contact, size: len(data)}
	c.size += headSize + int64(len(data))
	_, err := out.Write(append(b.head(data), data...))
	return err
}

// readContent reads a content.
func (j *journal) readContent(path string, place int) (c contentFile, last *chunk, objects []*apiserver.Object, err error) {
	c = contentFile{path: path, place: place}
	file, err := os.Open(path)
	if err != nil {
		return c, nil, nil, err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<20)
	head := make([]byte, headSize)
	for {
		if _, err := io.ReadFull(in, head); err != nil {
			return c, nil, nil, fmt.Errorf("%s: %w: %w", path, errBadChunk, err)
		}
		b, payload, ok := parseHead(head)
		if !ok {
			return c, nil, nil, fmt.Errorf("%s: %w", path, errBadChunk)
		}
		data := make([]byte, b.size)
		if _, err := io.ReadFull(in, data); err != nil || sum(data) != payload {
			return c, nil, nil, fmt.Errorf("%s: %w", path, errBadChunk)
		}
		block, err := j.decode(data)
		if err != nil {
			return c, nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		c.size += headSize + int64(b.size)
		if len(block.events) == 0 {
			return c, block, objects, nil
		}
		for _, e := range block.events {
			objects = append(objects, e.Object)
		}
	}
}
