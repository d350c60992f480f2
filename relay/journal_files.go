package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"
)

// journalLog is one file of blocks. Before each block stands a head of a fixed size.
type journalLog struct {
	path   string
	file   *os.File
	first  int
	blocks []journalBlock
	size   int64
}

const (
	logPrefix = "log-"
	headSize  = 60
	headMagic = 0x54524c31
	// mostBlock bounds a block, and so what a head may say.
	mostBlock = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

func createLog(dir string, first int) (*journalLog, error) {
	path := filepath.Join(dir, fmt.Sprintf("%s%020d", logPrefix, first))
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	return &journalLog{path: path, file: file, first: first}, err
}

func (b journalBlock) head(payload []byte) []byte {
	head := make([]byte, 0, headSize)
	head = binary.LittleEndian.AppendUint32(head, headMagic)
	head = binary.LittleEndian.AppendUint32(head, uint32(b.size))
	for _, n := range []int64{int64(b.first), int64(b.count), b.from, b.to, b.heard.UnixNano()} {
		head = binary.LittleEndian.AppendUint64(head, uint64(n))
	}
	head = binary.LittleEndian.AppendUint32(head, sum(payload))
	head = append(head, make([]byte, headSize-4-len(head))...)
	return binary.LittleEndian.AppendUint32(head, sum(head))
}

// parseHead also returns the checksum of what follows the head.
func parseHead(head []byte) (b journalBlock, payload uint32, ok bool) {
	if binary.LittleEndian.Uint32(head) != headMagic || sum(head[:headSize-4]) != binary.LittleEndian.Uint32(head[headSize-4:]) {
		return b, 0, false
	}
	number := func(i int) int64 { return int64(binary.LittleEndian.Uint64(head[8+8*i:])) }
	b = journalBlock{
		size: int(binary.LittleEndian.Uint32(head[4:])), first: int(number(0)), count: int(number(1)),
		from: number(2), to: number(3), heard: time.Unix(0, number(4)),
	}
	return b, binary.LittleEndian.Uint32(head[48:]), b.size >= 0 && b.size <= mostBlock && b.count >= 0
}

// write appends a block.
func (l *journalLog) write(b journalBlock, data []byte) error {
	b.offset = l.size
	if _, err := l.file.WriteAt(append(b.head(data), data...), l.size); err != nil {
		return err
	}
	l.size += headSize + int64(len(data))
	l.blocks = append(l.blocks, b)
	return nil
}

// read reads what is in a block.
func (l *journalLog) read(b journalBlock) ([]byte, error) {
	data := make([]byte, headSize+b.size)
	if _, err := l.file.ReadAt(data, b.offset); err != nil {
		return nil, fmt.Errorf("%s: %w", l.path, err)
	}
	found, payload, ok := parseHead(data[:headSize])
	if !ok || found.first != b.first || found.size != b.size || sum(data[headSize:]) != payload {
		return nil, fmt.Errorf("%s at %d: %w", l.path, b.offset, errBadChunk)
	}
	return data[headSize:], nil
}

// openLog finds the blocks of a file, up to the first whose head is not whole.
func openLog(path string, first int) (*journalLog, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	l := &journalLog{path: path, file: file, first: first}
	info, err := file.Stat()
	if err != nil {
		l.close()
		return nil, err
	}
	head := make([]byte, headSize)
	for next := first; ; {
		if _, err := file.ReadAt(head, l.size); err != nil {
			if errors.Is(err, io.EOF) {
				return l, nil
			}
			l.close()
			return nil, err
		}
		b, _, ok := parseHead(head)
		if !ok || b.first != next || l.size+headSize+int64(b.size) > info.Size() {
			return l, nil
		}
		b.offset, next = l.size, b.first+b.count
		l.blocks = append(l.blocks, b)
		l.size += headSize + int64(b.size)
	}
}

// end is the place after the last block.
func (l *journalLog) end() int {
	if n := len(l.blocks); n > 0 {
		return l.blocks[n-1].first + l.blocks[n-1].count
	}
	return l.first
}

// cut forgets the blocks from one on.
func (l *journalLog) cut(block int) error {
	if block < len(l.blocks) {
		l.size = l.blocks[block].offset
		l.blocks = l.blocks[:block]
	}
	return l.file.Truncate(l.size)
}

func (l *journalLog) close() { _ = l.file.Close() }

// remove deletes the file. Watches that read it meanwhile get 410.
func (l *journalLog) remove() {
	l.close()
	_ = os.Remove(l.path)
}

// restart begins the journal at a place and a version, without a past.
func (j *journal) restart(first int, version int64) error {
	j.clear()
	l, err := createLog(j.dir, first)
	if err != nil {
		return err
	}
	j.logs, j.end, j.version = []*journalLog{l}, first, version
	return nil
}

// clear removes all files but those that are being written.
func (j *journal) clear() {
	for _, l := range j.logs {
		l.remove()
	}
	for _, c := range j.contents {
		c.remove()
	}
	j.logs, j.contents = nil, nil
	j.recent.clear()
	j.past.clear()
}

// rotate begins a new log when the last one is large.
func (j *journal) rotate() error {
	last := j.logs[len(j.logs)-1]
	if last.size < j.logSize {
		return nil
	}
	if err := last.file.Sync(); err != nil {
		return err
	}
	l, err := createLog(j.dir, j.end)
	if err != nil {
		return err
	}
	j.logs = append(j.logs, l)
	return nil
}
