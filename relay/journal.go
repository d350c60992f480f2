package relay

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// journal is the past of one resource on disk, and a content to begin with.
//
// It has files of two sorts. A log is a row of blocks, each a compressed [chunk] with a
// checksum; blocks follow each other without a hole, over all logs. A content has all
// objects at one place of the row. A start reads the newest content, and the blocks after
// it; watches from old versions read single blocks. A list at an old version reads the
// next content after it and the blocks between, so some older contents are kept as well.
//
// Blocks are written without waiting for the disk. The journal ends before the first block
// that is not whole, whatever ended the process: the relay then begins at an older version,
// and the origin sends what follows again. A log is synced before the next one begins, and a
// content before older files go.
//
// If something cannot be written, the journal drops what it has and begins again a minute
// later: it never has a hole. The copy is served meanwhile.
type journal struct {
	dir    string
	of     *apiserver.Resource
	bytes  int64
	age    time.Duration
	logger *slog.Logger
	// block bounds a block, before and after it is compressed. Who reads an old version holds
	// several blocks in memory.
	block int
	// logSize ends a log file. Whole files are dropped when there are too many bytes.
	logSize int64

	encoder *zstd.Encoder
	decoder *zstd.Decoder
	// decoding is held while the decoder is used, which must not be closed meanwhile; closed
	// says that it was.
	decoding sync.RWMutex
	closed   bool

	mu sync.Mutex
	// logs are in order; the last one is written to. end is the place after the newest event,
	// version the one after the newest block.
	logs    []*journalLog
	end     int
	version int64
	// contents are the complete ones, in order. A start reads the last one.
	contents []contentFile
	// writing says that a content is being written, in the background.
	writing    bool
	background sync.WaitGroup
	failed     error
	failedAt   time.Time
	recent     recentChunks
	past       pastListing
}

// journalBlock is where a block is, and what is in it.
type journalBlock struct {
	first, count int
	// from is the version before the block, to the one after it.
	from, to int64
	heard    time.Time
	offset   int64
	size     int
}

var errNoJournal = errors.New("that is not in the journal")

// journalRetry is how long after a failure it is tried again.
const journalRetry = time.Minute

// find returns the first block for which a function returns true, and its log.
func (j *journal) find(is func(b journalBlock) bool) (journalBlock, *journalLog, bool) {
	for _, l := range j.logs {
		if n := len(l.blocks); n == 0 || !is(l.blocks[n-1]) {
			continue
		}
		i := sort.Search(len(l.blocks), func(i int) bool { return is(l.blocks[i]) })
		return l.blocks[i], l, true
	}
	return journalBlock{}, nil, false
}

// floor is the oldest version that a watch can begin at.
func (j *journal) floor() (int64, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.logs {
		if len(l.blocks) > 0 {
			return l.blocks[0].from, true
		}
	}
	return 0, false
}

// since returns the place of the first event after a version. It fails if that is not known.
func (j *journal) since(version int64) (int, error) {
	if floor, ok := j.floor(); !ok || version < floor {
		return 0, errNoJournal
	}
	j.mu.Lock()
	b, l, ok := j.find(func(b journalBlock) bool { return b.to > version })
	j.mu.Unlock()
	if !ok {
		return 0, errNoJournal
	}
	events, err := j.read(b, l)
	if err != nil {
		return 0, err
	}
	i := sort.Search(len(events), func(i int) bool { return events[i].Version > version })
	if i < len(events) && events[i].Gap != nil && events[i].Gap.From < version {
		return 0, errNoJournal
	}
	return b.first + i, nil
}

// after returns events from a place on, as many as are in a block.
func (j *journal) after(place int) ([]*apiserver.Event, error) {
	b, l, err := j.blockAt(place)
	if err != nil {
		return nil, err
	}
	events, err := j.read(b, l)
	if err != nil {
		return nil, err
	}
	return slices.Clip(events[place-b.first:]), nil
}

// blockAt returns the block that has the event of a place.
func (j *journal) blockAt(place int) (journalBlock, *journalLog, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	b, l, ok := j.find(func(b journalBlock) bool { return b.first+b.count > place })
	if !ok || place < b.first {
		return b, l, errNoJournal
	}
	return b, l, nil
}

// read reads the events of a block. Clients that come back at the same time read the same
// ones. A block of only a position has the place of the block after it, and would be mistaken
// for that one among those that were read recently.
func (j *journal) read(b journalBlock, l *journalLog) ([]*apiserver.Event, error) {
	if b.count == 0 {
		return nil, nil
	}
	return j.recent.get(b.first, func() ([]*apiserver.Event, error) { return j.readOnce(b, l) })
}

func (j *journal) readOnce(b journalBlock, l *journalLog) ([]*apiserver.Event, error) {
	data, err := l.read(b)
	if err != nil {
		return nil, err
	}
	c, err := j.decode(data)
	if err != nil {
		return nil, err
	}
	if len(c.events) != b.count {
		return nil, errBadChunk
	}
	return c.events, nil
}

func (j *journal) decode(data []byte) (*chunk, error) {
	raw, err := j.decompress(data)
	if err != nil {
		return nil, err
	}
	return decodeChunk(j.of, raw)
}

func (j *journal) decompress(data []byte) ([]byte, error) {
	j.decoding.RLock()
	defer j.decoding.RUnlock()
	if j.closed {
		return nil, errNoJournal
	}
	raw, err := j.decoder.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadChunk, err)
	}
	return raw, nil
}

// append writes events that follow the newest block, and the position after them. first is
// the place of the first one. It returns why the journal does not work; the relay works
// without it.
func (j *journal) append(first int, from int64, c *chunk) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil && time.Since(j.failedAt) < journalRetry {
		return j.failed
	}
	if j.failed != nil || len(j.logs) == 0 || first != j.end || from != j.version {
		if err := j.restart(first, from); err != nil {
			return j.fail(err)
		}
	}
	data, ok := j.encode(c)
	if !ok {
		return j.skip(first, c)
	}
	b := journalBlock{first: first, count: len(c.events), from: from, to: versionOf(c.position.Version), heard: c.contact, size: len(data)}
	if err := j.logs[len(j.logs)-1].write(b, data); err != nil {
		return j.fail(err)
	}
	j.end, j.version, j.failed = first+b.count, b.to, nil
	if err := j.rotate(); err != nil {
		return j.fail(err)
	}
	j.drop(c.contact)
	return nil
}

// encode returns what a block has; false if that would be too large to be read again.
func (j *journal) encode(c *chunk) ([]byte, bool) {
	raw, ok := c.encode(j.block)
	if !ok {
		return nil, false
	}
	data := j.encoder.EncodeAll(raw, nil)
	return data, len(data) <= j.block
}

// skip begins the journal again after events that are too large for a block. Only a gap is so
// large, in which nearly all objects of a large cluster have changed. Nobody can read on across
// events that are missing.
func (j *journal) skip(first int, c *chunk) error {
	j.logger.Warn("What changed in a gap is too large for the past on disk, which begins again after it; watches from older versions get 410.",
		"directory", j.dir, "most", j.block)
	if err := j.restart(first+len(c.events), versionOf(c.position.Version)); err != nil {
		return j.fail(err)
	}
	j.failed = nil
	return nil
}

// fail discards what the journal holds: events that were not written would be missing.
func (j *journal) fail(err error) error {
	if j.failed == nil {
		j.logger.Error("The past of a resource cannot be kept on disk; watches from old versions get 410 until it can.", "directory", j.dir, "error", err)
	}
	j.failed, j.failedAt = fmt.Errorf("%s: %w", j.dir, err), time.Now()
	j.clear()
	return j.failed
}

// problem is why nothing can be written, nil if it can.
func (j *journal) problem() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}

// drop removes the oldest logs if they are too old, or if logs and old contents are too
// large. Those that a start needs stay.
func (j *journal) drop(now time.Time) {
	newest, ok := j.newest()
	if !ok {
		return
	}
	total := j.size() - newest.size
	for len(j.logs) > 1 {
		oldest := j.logs[0]
		old := len(oldest.blocks) == 0 || oldest.blocks[len(oldest.blocks)-1].heard.Before(now.Add(-j.age))
		if total <= j.bytes && !old || j.logs[1].first > newest.place {
			break
		}
		oldest.remove()
		j.logs = j.logs[1:]
		j.dropContents()
		total = j.size() - newest.size
	}
}

// save writes a content in the background if the newest one is far behind.
func (j *journal) save(place int, position tarn.Position, contact time.Time, objects []*apiserver.Object) {
	j.mu.Lock()
	defer j.mu.Unlock()
	newest, ok := j.newest()
	if j.writing || j.failed != nil || ok && j.bytesBetween(newest.place, j.end) < max(2*newest.size, j.logSize) {
		return
	}
	j.writing = true
	j.background.Go(func() {
		written, err := j.writeContent(place, position, contact, objects)
		j.mu.Lock()
		defer j.mu.Unlock()
		j.writing = false
		switch {
		case err != nil:
			j.fail(err)
		case len(j.logs) == 0 || place < j.logs[0].first || place > j.end:
			written.remove() // the journal began again meanwhile
		default:
			j.contents = append(j.contents, written)
			j.thin()
		}
	})
}

// bytesBetween is how many bytes there are between two places, by whole logs.
func (j *journal) bytesBetween(from, to int) (n int64) {
	for _, l := range j.logs {
		if l.first >= from && l.first < to {
			n += l.size
		}
	}
	return n
}

// close ends everything that the journal does. Requests may still read it: those for the past
// of a custom resource whose definition has changed.
func (j *journal) close() {
	j.background.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.logs {
		l.close()
	}
	_ = j.encoder.Close() // it holds nothing
	j.decoding.Lock()
	defer j.decoding.Unlock()
	j.closed = true
	j.decoder.Close()
}

// total is how many bytes are on disk.
func (j *journal) total() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size()
}

func (j *journal) size() (n int64) {
	for _, l := range j.logs {
		n += l.size
	}
	for _, c := range j.contents {
		n += c.size
	}
	return n
}

// forget removes everything, because the origin went back in time or is another one.
func (j *journal) forget() {
	j.background.Wait() // a content that appears later would be one of before
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clear()
}
