package kube

import (
	"io"

	"github.com/tarnproject/tarn/internal/jsonend"
)

// jsonToken returns the next byte that is not space, without consuming it.
func (f *bodyBuffer) jsonToken() (byte, error) {
	for {
		for f.at < f.end {
			switch c := f.block.data[f.at]; c {
			case ' ', '\t', '\r', '\n':
				f.at++
			default:
				return c, nil
			}
		}
		if err := f.fill(1); err != nil {
			return 0, err
		}
	}
}

// jsonValue waits until the window begins with a whole value, and returns its
// length. It does not wait for a value longer than limit: the caller skips that
// with skipJSON.
func (f *bodyBuffer) jsonValue(limit int) (s jsonend.Scan, tooLong bool, err error) {
	return f.jsonValueUnless(limit, func(int) error { return nil })
}

// jsonValueUnless is jsonValue that stops if broken fails. It calls broken before
// it waits for bytes, with how many bytes of the window broken has seen before.
func (f *bodyBuffer) jsonValueUnless(limit int, broken func(seen int) error) (s jsonend.Scan, tooLong bool, err error) {
	for seen := 0; !s.Scan(f.window()); {
		if err := broken(seen); err != nil {
			return s, false, err
		}
		seen = len(f.window())
		if seen > limit {
			return s, true, nil
		}
		if err := f.fill(f.end - f.at + 1); err != nil {
			return s, false, unexpected(err)
		}
	}
	return s, s.Pos > limit, nil
}

// skipJSON consumes a value of any length and returns its length. s has scanned what
// the window has of it.
func (f *bodyBuffer) skipJSON(s jsonend.Scan) (int64, error) {
	from := f.offset()
	for !s.Scan(f.window()) {
		f.at = f.end
		s.Consume()
		if err := f.fill(1); err != nil {
			return 0, unexpected(err)
		}
	}
	f.at += s.Pos
	return f.offset() - from, nil
}

// unexpected turns an end of the body into an error.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
