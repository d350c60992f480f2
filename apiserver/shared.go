package apiserver

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// sharedFrames are the frames of the newest events, as they are sent. A frame is made by the
// first stream that sends it; the others neither copy it nor need a buffer of their own.
//
// There are only a few: an event reaches its streams within milliseconds, and a stream that is
// further behind sends several events at once, from its own buffer. Large frames are shared too:
// a copy for each of a thousand slow clients would take a gigabyte.
type sharedFrames struct {
	mu     sync.Mutex
	frames [16]sharedFrame
	next   int
	bytes  int
}

// sharedBytes bounds the frames together, except for a single one that is larger.
const sharedBytes = 4 << 20

type sharedFrame struct {
	of   sharedKey
	data []byte
}

// sharedKey says which frames are the same.
type sharedKey struct {
	object *Object
	kind   watch.EventType
	form   form
	// reserved tells outputs of one sort from others.
	reserved int
}

// frameOverhead is about how much longer a frame is than its object.
const frameOverhead = 128

// get returns the frame of an event. encode makes it on first use.
func (s *sharedFrames) get(of sharedKey, encode func() ([]byte, error)) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.frames {
		if s.frames[i].of == of {
			return s.frames[i].data, nil
		}
	}
	data, err := encode()
	if err == nil {
		s.keep(sharedFrame{of, data})
	}
	return data, err
}

// keep stores a frame, and drops the oldest ones to make room for it.
func (s *sharedFrames) keep(f sharedFrame) {
	s.bytes += len(f.data)
	for i := range s.frames {
		if i > 0 && s.bytes <= sharedBytes {
			break
		}
		oldest := &s.frames[(s.next+i)%len(s.frames)]
		s.bytes -= len(oldest.data)
		*oldest = sharedFrame{}
	}
	s.frames[s.next] = f
	s.next = (s.next + 1) % len(s.frames)
}
