package relay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
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
	path     string
	place    int
	size     int64
	complete bool
}

const (
	contentPrefix = "content-"
	// contentBlock is how many objects are in a block.
	contentBlock = 256
)

func (c contentFile) remove() { _ = os.Remove(c.path) }

// writeContent writes a content under another name first: a file that has its own name is
// complete and on the disk.
func (j *journal) writeContent(place int, position tarn.Position, contact time.Time, objects []*apiserver.Object) (contentFile, error) {
	c := contentFile{path: filepath.Join(j.dir, fmt.Sprintf("%s%020d", contentPrefix, place)), place: place, complete: true}
	file, err := os.OpenFile(c.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return c, err
	}
	out := bufio.NewWriterSize(file, 1<<20)
	for part := range slices.Chunk(objects, contentBlock) {
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
	return c, err
}

func (c *contentFile) write(out io.Writer, j *journal, block *chunk) error {
	data := j.encoder.EncodeAll(block.encode(), nil)
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
			c.complete = true
			return c, block, objects, nil
		}
		for _, e := range block.events {
			objects = append(objects, e.Object)
		}
	}
}
