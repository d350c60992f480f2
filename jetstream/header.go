package jetstream

import (
	"net/url"

	"github.com/nats-io/nats.go"
)

// header holds the headers of a message, each name once. It is a list and not a map,
// because one is made for each message, and none has more than ten names.
type header []headerField

type headerField struct{ name, value string }

func (h *header) add(name, value string) { *h = append(*h, headerField{name, value}) }

// get returns the value of a name, or an empty string.
func (h header) get(name string) string {
	for _, f := range h {
		if f.name == name {
			return f.value
		}
	}
	return ""
}

// escaped adds a value that is not empty. Characters that headers do not keep, such as spaces
// at the end, are escaped as in a URL.
func (h *header) escaped(name, value string) {
	if value != "" {
		h.add(name, url.PathEscape(value))
	}
}

// unescaped is a value that was added by escaped.
func unescaped(h nats.Header, name string) string {
	text := h.Get(name)
	if value, err := url.PathUnescape(text); err == nil {
		return value
	}
	return text
}

// outgoing is what is given to nats.go, which copies it. One is used for many messages.
type outgoing struct {
	nats.Msg
	values []string
}

// begin makes it the message m.
func (o *outgoing) begin(m message) {
	if o.Header == nil {
		o.Header = nats.Header{}
	}
	clear(o.Header)
	o.values = o.values[:0]
	o.Subject, o.Reply, o.Data = m.subject, "", m.data
	for _, f := range m.header {
		o.set(f.name, f.value)
	}
}

func (o *outgoing) set(name, value string) {
	o.values = append(o.values, value)
	n := len(o.values)
	o.Header[name] = o.values[n-1 : n : n]
}
