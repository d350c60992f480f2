package relay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tarnproject/tarn/apiserver"
)

// journalOrigin says where the objects of a journal came from.
type journalOrigin struct {
	// Server is the uid of a namespace that every cluster has, empty if it is not known.
	Server string `json:"server"`
	// Definition is that of a custom resource.
	Definition string `json:"definition,omitempty"`
}

const originFile = "origin.json"

// restored is what a journal begins with.
type restored struct {
	last    *chunk // its position, nil if there is nothing
	content content
}

// journalBounds are those of what is kept: the bytes and the age of the past, and the bytes of a
// block, mostBlock if 0.
type journalBounds struct {
	bytes int64
	age   time.Duration
	block int
}

// openJournal opens a directory, which one process at a time may use.
func openJournal(dir string, of *apiserver.Resource, bounds journalBounds, logger *slog.Logger) (*journal, restored, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, restored{}, err
	}
	j := &journal{
		dir: dir, of: of, bytes: bounds.bytes, age: bounds.age, block: cmp.Or(bounds.block, mostBlock),
		logger: logger, logSize: 16 << 20, past: pastListing{turn: make(chan struct{}, 1)},
	}
	var err error
	if j.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
		return nil, restored{}, err
	}
	if j.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(uint64(j.block))); err != nil {
		return nil, restored{}, err
	}
	if origin := j.origin(); origin.Definition != of.Definition() {
		if err := errors.Join(j.wipe(), j.setOrigin(journalOrigin{Server: origin.Server, Definition: of.Definition()})); err != nil {
			return nil, restored{}, err
		}
	}
	kept, err := j.load()
	return j, kept, err
}

func (j *journal) origin() (o journalOrigin) {
	if data, err := os.ReadFile(filepath.Join(j.dir, originFile)); err == nil {
		_ = json.Unmarshal(data, &o) // an unreadable file is as good as none
	}
	return o
}

func (j *journal) setOrigin(o journalOrigin) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	path := filepath.Join(j.dir, originFile)
	return errors.Join(os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path))
}

// found is a file, by the place in its name.
type found struct {
	path  string
	place int
}

// files finds the files of one sort, in the order of their places. Files that were not
// finished are removed.
func (j *journal) files(prefix string) (all []found, err error) {
	entries, err := os.ReadDir(j.dir)
	for _, e := range entries {
		path := filepath.Join(j.dir, e.Name())
		rest, ok := strings.CutPrefix(e.Name(), prefix)
		place, bad := strconv.Atoi(rest)
		switch {
		case strings.HasSuffix(e.Name(), ".new"):
			err = errors.Join(err, os.Remove(path))
		case ok && bad == nil:
			all = append(all, found{path, place})
		}
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.place, b.place) })
	return all, err
}

// wipe removes all files, also those that were not opened.
func (j *journal) wipe() error {
	logs, err := j.files(logPrefix)
	contents, other := j.files(contentPrefix)
	err = errors.Join(err, other)
	for _, f := range append(logs, contents...) {
		if gone := os.Remove(f.path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// load reads the newest content and everything after it.
func (j *journal) load() (restored, error) {
	contents, err := j.files(contentPrefix)
	if err != nil {
		return restored{}, err
	}
	for i, f := range slices.Backward(contents) {
		c, last, objects, err := j.readContent(f.path, f.place)
		if err != nil {
			j.logger.Warn("A content on disk is damaged; an older one is tried, or everything is read from the origin.", "file", f.path, "error", err)
			_ = os.Remove(f.path)
			continue
		}
		if err := j.adopt(contents[:i]); err != nil {
			return restored{}, err
		}
		j.contents = append(j.contents, c)
		j.end, j.version = c.place, versionOf(last.position.Version)
		kept := restored{last: last, content: content{objects: objects}}
		return kept, j.loadLogs(&kept, c.place)
	}
	return restored{}, j.wipe()
}

// adopt records contents that are read when they are needed.
func (j *journal) adopt(older []found) error {
	for _, f := range older {
		info, err := os.Stat(f.path)
		if err != nil {
			return err
		}
		j.contents = append(j.contents, contentFile{path: f.path, place: f.place, size: info.Size()})
	}
	return nil
}

// loadLogs opens the logs, and brings the content of a place up to date. A log that does not
// follow the one before is dropped, and so is everything beyond it.
func (j *journal) loadLogs(kept *restored, place int) error {
	all, err := j.files(logPrefix)
	if err != nil {
		return err
	}
	end := -1
	for i, f := range all {
		l, err := openLog(f.path, f.place)
		if err != nil {
			return err
		}
		if end >= 0 && l.first != end {
			if l.first > place {
				l.close()
				removeFiles(all[i:])
				break
			}
			j.dropLogs(0)
		}
		j.logs = append(j.logs, l)
		end = l.end()
	}
	return j.replay(kept, place)
}

// replay applies the blocks after the content of a place. The journal ends at the first that
// cannot be read.
func (j *journal) replay(kept *restored, place int) error {
	defer j.dropContents()
	reached, begin := false, j.version
	for i, l := range j.logs {
		for n, b := range l.blocks {
			if end := b.first + b.count; end <= place && b.to <= begin {
				reached = end == place && b.to == begin
				continue
			}
			c, err := j.next(b, l)
			if err != nil {
				j.logger.Warn("The journal ends before a damaged part; the origin sends what follows again.", "file", l.path, "error", err)
				j.dropLogs(i + 1)
				if err := l.cut(n); err != nil {
					return err
				}
				break
			}
			kept.apply(c)
			j.end, j.version, reached = b.first+b.count, b.to, true
		}
		if i >= len(j.logs)-1 {
			break // the others were dropped
		}
	}
	if !reached {
		j.dropLogs(0)
	} else if last := j.logs[len(j.logs)-1]; last.end() == j.end {
		return last.cut(len(last.blocks))
	}
	l, err := createLog(j.dir, j.end)
	j.logs = append(j.logs, l)
	return err
}

// next reads the block that follows.
func (j *journal) next(b journalBlock, l *journalLog) (*chunk, error) {
	if b.first != j.end || b.from != j.version {
		return nil, fmt.Errorf("%w: it is from %d at version %d, and %d at version %d follows", errBadChunk, b.first, b.from, j.end, j.version)
	}
	data, err := l.read(b)
	if err != nil {
		return nil, err
	}
	return j.decode(data)
}

// dropLogs removes the logs from one on; all if it is 0.
func (j *journal) dropLogs(from int) {
	if from > len(j.logs) {
		return
	}
	for _, l := range j.logs[from:] {
		l.remove()
	}
	j.logs = j.logs[:from]
}

func removeFiles(files []found) {
	for _, f := range files {
		_ = os.Remove(f.path)
	}
}

// apply changes the content by the events of a chunk.
func (k *restored) apply(c *chunk) {
	k.last = c
	for _, e := range c.events {
		switch {
		case e.Gap != nil:
			for _, change := range e.Gap.Changes {
				k.content.set(gapKey(change), change.New)
			}
		case e.Type == "DELETED":
			k.content.set(e.Object.Key(), nil)
		default:
			k.content.set(e.Object.Key(), e.Object)
		}
	}
}
