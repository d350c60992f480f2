package apiserver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Limits on requests, so that a small one cannot take much time or memory.
const (
	// maxBody is what a real server accepts, and how large an object may become.
	maxBody = 3 << 20
	// maxNesting is how deep a body may be nested, as in encoding/json.
	maxNesting = 10_000
	// maxComplaints is how many fields are complained about; others are counted.
	maxComplaints = 100
	// maxShown is how much of a value is repeated in a complaint about it.
	maxShown = 1000
)

// deadlines are for how long a connection may not send a request's header, its body,
// or the next request. Watches have none, except for their writes.
type deadlines struct{ header, body, idle time.Duration }

var usualDeadlines = deadlines{header: 30 * time.Second, body: time.Minute, idle: 2 * time.Minute}

// A copy in a JSON patch may double an object, so what copies add up to is bounded.
// The library has this for the whole process only; the real server sets it too. A
// program that has set it keeps its own.
func init() {
	if jsonpatch.AccumulatedCopySizeLimit == 0 {
		jsonpatch.AccumulatedCopySizeLimit = maxBody
	}
}

func entityTooLarge() error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
}

// checkNesting refuses a protobuf body that is nested too deep: generated decoders
// recurse once per level, and a stack overflow ends the process. The decoders of JSON
// and YAML have limits of their own.
func checkNesting(data []byte) error {
	message, ok := bytes.CutPrefix(data, []byte("k8s\x00"))
	if ok && deeper(message, maxNesting) {
		return apierrors.NewBadRequest(fmt.Sprintf("the body of the request is nested more than %d levels deep", maxNesting))
	}
	return nil
}

// deeper reports whether a message may have more than that many levels. It cannot tell
// a string from a nested message, so it may count a string that was crafted to look
// like one.
func deeper(data []byte, levels int) bool {
	if levels == 0 {
		return true
	}
	for len(data) > 0 {
		key, n := binary.Uvarint(data)
		if n <= 0 {
			return false
		}
		data = data[n:]
		switch key & 7 {
		case 0:
			if _, n = binary.Uvarint(data); n <= 0 {
				return false
			}
		case 1:
			n = 8
		case 5:
			n = 4
		case lengthDelimited:
			size, m := binary.Uvarint(data)
			if m <= 0 || size > uint64(len(data)-m) {
				return false
			}
			n = m + int(size)
			if deeper(data[m:n], levels-1) {
				return true
			}
		default:
			return false
		}
		if n > len(data) {
			return false
		}
		data = data[n:]
	}
	return false
}

// indentable reports whether JSON can be indented at a reasonable size: an object of 1
// MB that is nested 9,000 levels deep would become gigabytes.
func indentable(content []byte) bool {
	const perByte, free = 16, 1 << 20
	depth, indentation, quoted := 0, 0, false
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			indentation += 2 * depth
		case c == '}' || c == ']':
			depth--
		case c == ',':
			indentation += 2 * depth
		}
	}
	return indentation <= perByte*len(content)+free
}

// clients counts the connections of each address, of a server that listens.
type clients struct {
	most int

	mu   sync.Mutex
	open map[net.Conn]string
	by   map[string]int
}

// watch makes a server report its connections. It closes one that is too many.
func (c *clients) watch(server *http.Server) {
	c.open, c.by = map[net.Conn]string{}, map[string]int{}
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch state {
		case http.StateNew:
			address, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
			if c.by[address] >= c.most {
				_ = conn.Close()
				return
			}
			c.open[conn] = address
			c.by[address]++
		case http.StateClosed, http.StateHijacked:
			address, ok := c.open[conn]
			if !ok {
				return
			}
			delete(c.open, conn)
			if c.by[address]--; c.by[address] == 0 {
				delete(c.by, address)
			}
		}
	}
}

// withoutReadDeadline removes the server's read deadline from requests that have no
// body: it would end watches.
func withoutReadDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if r.Body == nil || r.Body == http.NoBody {
			_ = control.SetReadDeadline(time.Time{}) // the connection is gone if it fails
		}
		next.ServeHTTP(w, r)
	})
}
