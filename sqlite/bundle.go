package sqlite

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/tarnproject/tarn"
)

// bundlesDDL makes the table of all bundles. A bundle has copies of the objects of one span
// of rows, compressed together. Neighbouring objects are mostly equal: in bundles, pods take
// a ninth of the bytes of their rows, and a start that reads bundles takes about 0.8 of the
// CPU and of the time.
//
// Rows have the content, and only [Store.load] reads bundles. These rules keep a bundle from
// leading to a wrong copy, and from keeping deleted content:
//
//   - A bundle has all objects of its span. A write to a row of the span deletes the
//     bundle in the same transaction.
//   - A load verifies the CRC of each bundle, and compares the number, the checksums and the
//     keys of all objects that it found with the state of the collection and the index of the
//     keys. If anything differs, it reads the rows instead.
//   - A span that was not written for [bundleAfter] gets a bundle again.
//
// Why not one file of all objects: the first write would make it useless. Why not bundles
// without rows: changing one object would mean compressing its whole span again.
const bundlesDDL = `CREATE TABLE tarn_bundles (collection INTEGER NOT NULL, span INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (collection, span))`

const (
	// spanBits gives the number of ids of a span, 64. With 64, a real pod took 278 bytes of a
	// bundle, with 128 it took 256, with 256 it took 246. But a write to any row of a span
	// deletes its bundle.
	spanBits = 6
	// fewestBundled is the least number of rows for which a bundle is made.
	fewestBundled = 16
	// largestBundle limits the bytes of a bundle before they are compressed. The rows of a
	// span with larger objects are read one by one.
	largestBundle = 4 << 20
	// bundleWindow is how far back zstd searches for repetitions: the size of most bundles.
	bundleWindow = 1 << 20
)

// spanOf is the span of a row.
func spanOf(id int64) int64 { return id >> spanBits }

// firstOf is the first id of a span.
func firstOf(span int64) int64 { return span << spanBits }

// bundleKey replaces the key of an object in the CRC of a bundle, and in its encryption.
func bundleKey(span int64) tarn.Key { return tarn.Key("\x00bundle " + strconv.FormatInt(span, 10)) }

// bundle is the content of a bundle: a list of its objects, and their bytes.
type bundle struct {
	count int
	list  []byte
	plain []byte
}

// bundled is an object of a bundle. Its plain bytes are in the memory of the bundle.
type bundled struct {
	id    int64
	key   string
	sum   Sum
	plain []byte
}

func (b *bundle) add(o bundled) {
	b.count++
	b.list = binary.AppendUvarint(b.list, uint64(o.id&(1<<spanBits-1)))
	b.list = binary.AppendUvarint(b.list, uint64(len(o.key)))
	b.list = append(b.list, o.key...)
	b.list = append(b.list, o.sum[:]...)
	b.list = binary.AppendUvarint(b.list, uint64(len(o.plain)))
	b.plain = append(b.plain, o.plain...)
}

func (b *bundle) reset() { b.count, b.list, b.plain = 0, b.list[:0], b.plain[:0] }

// bytes returns what [readBundle] reads.
func (b *bundle) bytes() []byte {
	raw := binary.AppendUvarint(nil, uint64(b.count))
	raw = binary.AppendUvarint(raw, uint64(len(b.list)))
	return append(append(raw, b.list...), b.plain...)
}

var errBadBundle = fmt.Errorf("%w: a bundle", errBadRow)

// readBundle calls each for the objects of a bundle.
func readBundle(span int64, raw []byte, each func(bundled) error) error {
	r := bundleReader{rest: raw}
	count, size := r.number(), r.number()
	list := r.take(size)
	l := bundleReader{rest: list, bad: r.bad}
	texts := string(list) // one allocation for all keys
	for range count {
		o := bundled{id: firstOf(span) | int64(l.number()&(1<<spanBits-1))}
		n := l.number()
		at := len(list) - len(l.rest)
		if key := l.take(n); !l.bad {
			o.key = texts[at : at+len(key)]
		}
		copy(o.sum[:], l.take(uint64(len(o.sum))))
		o.plain = r.take(l.number())
		if l.bad || r.bad {
			return errBadBundle
		}
		if err := each(o); err != nil {
			return err
		}
	}
	if r.bad || len(l.rest) > 0 || len(r.rest) > 0 {
		return errBadBundle
	}
	return nil
}

// bundleReader reads numbers and bytes. bad says that the input ended too early.
type bundleReader struct {
	rest []byte
	bad  bool
}

func (r *bundleReader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *bundleReader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

// packBundle returns the stored bytes of a bundle: its size, and the bundle as one frame of
// zstd, with a CRC like that of objects. For 64 pods zstd takes two thirds of the bytes of s2,
// and 2.2 µs instead of 1.5 µs to decompress a pod. With s2 the file would grow by more than
// it should.
func (p *packer) packBundle(bundler *zstd.Encoder, span int64, plain []byte) (stored []byte, err error) {
	packed := binary.AppendUvarint([]byte{packedAlone}, uint64(len(plain)))
	packed = bundler.EncodeAll(plain, packed)
	stored = p.appendCRC(bundleKey(span), packed)
	if p.keys.seal != nil {
		return p.keys.seal.close(stored, p.belongs(bundleKey(span)))
	}
	return stored, nil
}

// unpackBundle reverses packBundle. The result is in the memory of u.
func (p *packer) unpackBundle(u *unbundler, span int64, stored []byte) ([]byte, error) {
	packed, checked, err := p.open(bundleKey(span), stored)
	if err != nil {
		return nil, err
	}
	if !checked || packed[0]&^packedCRC != packedAlone {
		return nil, errBadBundle
	}
	size, n := binary.Uvarint(packed[1:])
	if n <= 0 || size > 2*largestBundle {
		return nil, errBadBundle
	}
	return u.plain(int(size), packed[1+n:])
}

// newBundler makes the compressor of bundles. Its tables are reused for bundles that are made
// together. Why not for longer, or for all stores: it contains channels, and channels made in
// one test in virtual time cannot be used in another one.
func newBundler() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(bundleWindow))
}

// unbundler decompresses bundles, in memory that it reuses. It belongs to one goroutine.
type unbundler struct {
	decoder *zstd.Decoder
	room    []byte
}

// plain decompresses packed, whose content has this size.
func (u *unbundler) plain(size int, packed []byte) (plain []byte, err error) {
	if u.decoder == nil {
		if u.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*largestBundle)); err != nil {
			return nil, err
		}
	}
	if size > cap(u.room) {
		u.room = make([]byte, size+size/4)
	}
	plain, err = u.decoder.DecodeAll(packed, u.room[:0])
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errBadBundle, err)
	case len(plain) != size:
		return nil, errBadBundle
	}
	return plain, nil
}
