package sqlite

import (
	"fmt"
	"sync/atomic"

	"github.com/klauspost/compress/s2"

	"github.com/tarnproject/tarn"
)

const (
	// largestDictionary is the largest dictionary that s2 supports.
	largestDictionary = 64 << 10
	// largestObject limits the size of an object, so that a damaged length does not
	// allocate too much memory. API servers store at most a fortieth of it.
	largestObject = 64 << 20
	// smallest is the size below which compression is not worth its cost.
	smallest = 128

	packedPlain byte = iota
	packedAlone
	packedByDictionary
)

// packer compresses and encrypts an object's bytes, and reverses that.
//
// Objects are compressed against the dictionary of the collection; see [Collection].
// Why not zstd: with the same dictionary it makes real pods a quarter smaller, in three
// times the time.
//
// Why not a dictionary made of the objects themselves, which makes them smaller still
// (real pods 1.9 KB instead of 2.6): it would keep content of objects, secrets too,
// after they were changed or deleted.
//
// One goroutine packs; any number unpack.
type packer struct {
	owner string
	keys  *fileKeys
	dict  atomic.Pointer[dictionary]
	// room is the buffer for compression.
	room []byte
}

// pack returns the stored bytes of an object, and their checksum. The checksum is of the
// compressed bytes, which are the same for the same object and a quarter as many.
func (p *packer) pack(key tarn.Key, plain []byte) (stored []byte, sum Sum, err error) {
	if len(plain) > largestObject {
		return nil, sum, fmt.Errorf("it has %d bytes; objects of up to %d are kept on disk", len(plain), largestObject)
	}
	packed := p.squeeze(plain)
	sum = p.sum(key, packed)
	stored = p.appendCRC(key, packed)
	if p.keys.seal != nil {
		stored, err = p.keys.seal.close(stored, p.belongs(key))
	}
	return stored, sum, err
}

// squeeze compresses bytes that are worth it.
func (p *packer) squeeze(plain []byte) []byte {
	dict := p.dict.Load()
	switch {
	case len(plain) < smallest:
		return append([]byte{packedPlain}, plain...)
	case dict != nil:
		return p.compress(packedByDictionary, plain, dict.Encode)
	default:
		return p.compress(packedAlone, plain, s2.Encode)
	}
}

// unsqueeze reverses squeeze.
func (p *packer) unsqueeze(packed, buf []byte) ([]byte, error) {
	if len(packed) == 0 {
		return nil, fmt.Errorf("%w: it is empty", errBadRow)
	}
	how := packed[0] &^ packedCRC
	if how == packedPlain {
		return packed[1:], nil
	}
	plain, err := p.expand(how, packed[1:], buf)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadRow, err)
	}
	return plain, nil
}

// squeezeDifference compresses a difference of a history. Why without the dictionary: in a
// difference of a status update it finds 7 bytes more of 240, and takes five times as long.
func (p *packer) squeezeDifference(plain []byte) []byte {
	if len(plain) < smallest {
		return append([]byte{packedPlain}, plain...)
	}
	return p.compress(packedAlone, plain, s2.Encode)
}

// unsqueezeTo is like unsqueeze, and lets room grow as far as a fast decompression needs. The
// result may be in the memory of packed.
func (p *packer) unsqueezeTo(room *[]byte, packed []byte) ([]byte, error) {
	if len(packed) > 0 && packed[0]&^packedCRC != packedPlain {
		need, err := s2.DecodedLen(packed[1:])
		if dict := p.dict.Load(); dict != nil {
			need += dict.led
		}
		if err == nil && need > cap(*room) && need <= largestObject {
			*room = make([]byte, need+need/4)
		}
	}
	return p.unsqueeze(packed, *room)
}

// sum is the checksum of an object. It is the same with and without a CRC.
func (p *packer) sum(key tarn.Key, packed []byte) Sum {
	return p.keys.sums.sum(func(h *sumHash) {
		h.text("object")
		h.text(p.owner)
		h.text(string(key))
		h.packed(packed)
	})
}

func (p *packer) compress(how byte, plain []byte, encode func(dst, src []byte) []byte) []byte {
	if need := 1 + s2.MaxEncodedLen(len(plain)); len(p.room) < need {
		p.room = make([]byte, need+need/2)
	}
	p.room[0] = how
	n := len(encode(p.room[1:], plain))
	return append([]byte(nil), p.room[:1+n]...)
}

// unpack returns the object's bytes, which may be in the memory of stored or buf, and
// verifies that they are undamaged: by their CRC, or by the checksum if they have none.
func (p *packer) unpack(key tarn.Key, want Sum, stored, buf []byte) ([]byte, error) {
	packed, checked, err := p.open(key, stored)
	switch {
	case err != nil:
		return nil, err
	case !checked && p.sum(key, packed) != want:
		return nil, errBadSum
	}
	return p.unsqueeze(packed, buf)
}

// unpackBase is like unpack, for a base of a history with the values of its columns. Only the
// checksum tells whether those values are undamaged.
func (p *packer) unpackBase(key tarn.Key, want Sum, cols, stored, buf []byte) ([]byte, error) {
	packed, _, err := p.open(key, stored)
	if err == nil {
		err = p.verifyBase(key, want, cols, packed)
	}
	if err != nil {
		return nil, err
	}
	return p.unsqueeze(packed, buf)
}

// verifyBase compares a base, without its CRC, with its checksum.
func (p *packer) verifyBase(key tarn.Key, want Sum, cols, packed []byte) error {
	if baseSum(p.keys.sums, p.sum(key, packed), cols) != want {
		return errBadSum
	}
	return nil
}

// open decrypts stored bytes, and takes the CRC off those that have one.
func (p *packer) open(key tarn.Key, stored []byte) (packed []byte, checked bool, err error) {
	if p.keys.seal != nil {
		if stored, err = p.keys.seal.open(stored, p.belongs(key)); err != nil {
			return nil, false, err
		}
	}
	return p.cutCRC(key, stored)
}

func (p *packer) expand(how byte, packed, buf []byte) ([]byte, error) {
	size, err := s2.DecodedLen(packed)
	switch dict := p.dict.Load(); {
	case err != nil:
		return nil, err
	case size > largestObject:
		return nil, fmt.Errorf("it claims to have %d bytes", size)
	case how == packedAlone:
		return s2.Decode(buf[:cap(buf)], packed)
	case how != packedByDictionary:
		return nil, fmt.Errorf("packed in an unknown way, %d", how)
	case dict == nil:
		return nil, fmt.Errorf("its dictionary is missing")
	default:
		return dict.decode(buf, packed)
	}
}

// belongs names the object of packed bytes.
func (p *packer) belongs(key tarn.Key) []byte { return []byte(p.owner + "\x00" + string(key)) }

// use sets the dictionary from the file, if it has one.
func (p *packer) use(stored []byte) error {
	if len(stored) == 0 {
		p.dict.Store(nil)
		return nil
	}
	dict, err := newDictionary(stored)
	if err != nil {
		return err
	}
	p.dict.Store(dict)
	return nil
}

// storedDictionary is the dictionary in its stored form.
func storedDictionary(words []byte) []byte {
	if dict := s2.MakeDict(words[:min(len(words), largestDictionary)], nil); dict != nil {
		return dict.Bytes()
	}
	return nil
}
