package apiserver

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// gzipFrom is the size from which on answers are compressed for clients that accept
// it; below it the time is not worth the bytes.
const gzipFrom = 128 << 10

// body is an answer in pieces, so that a list is sent out of the encodings of
// its objects without being put together first.
type body [][]byte

func (b body) size() (n int) {
	for _, piece := range b {
		n += len(piece)
	}
	return n
}

// send writes an answer.
func send(w http.ResponseWriter, r *http.Request, code int, media media, content body) {
	if media != asProtobuf {
		content = finish(r, media, content)
	}
	header := w.Header()
	header.Set("Content-Type", media.String())
	header.Set("Cache-Control", "no-cache, private")
	size := content.size()
	if size < gzipFrom || !takesGzip(r.Header.Get("Accept-Encoding")) {
		header.Set("Content-Length", strconv.Itoa(size))
		w.WriteHeader(code)
		content.writeTo(w)
		return
	}
	header.Set("Content-Encoding", "gzip")
	header.Add("Vary", "Accept-Encoding")
	w.WriteHeader(code)
	compressor, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	content.writeTo(compressor)
	compressor.Close()
}

// takesGzip says whether a client accepts compressed answers. A quality of 0 says that it
// does not.
func takesGzip(header string) bool {
	return slices.ContainsFunc(clauses(header), func(c clause) bool { return c.media == "gzip" && c.quality > 0 })
}

// writeTo stops at the first error: the client has gone.
func (b body) writeTo(w io.Writer) {
	for _, piece := range b {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// finish ends the line, and makes YAML or indented JSON if the client accepts that.
// An object that is nested too deep is sent unchanged, in one line, which is YAML
// too.
func finish(r *http.Request, media media, content body) body {
	pretty, _ := strconv.ParseBool(r.URL.Query().Get("pretty"))
	if media != asYAML && !pretty {
		return append(content, []byte("\n"))
	}
	whole := bytes.Join(content, nil)
	if !indentable(whole) {
		return body{whole, []byte("\n")}
	}
	if media == asYAML {
		if text, err := yaml.JSONToYAML(whole); err == nil {
			return body{text}
		}
	} else {
		var indented bytes.Buffer
		if json.Indent(&indented, whole, "", "  ") == nil {
			return body{indented.Bytes(), []byte("\n")}
		}
	}
	return body{whole, []byte("\n")}
}

// sendError sends a status, in protobuf to clients that accept nothing else.
func sendError(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	a, negotiated := negotiate(r, func(answer) bool { return true })
	if negotiated != nil {
		a = answer{}
	}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	sendStatus(w, r, a.media, status)
}

func sendStatus(w http.ResponseWriter, r *http.Request, media media, status metav1.Status) {
	code := int(status.Code)
	if code == 0 {
		code = http.StatusOK
	}
	data, err := encodeStatus(status, media)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, r, code, media, body{data})
}

func encodeStatus(status metav1.Status, media media) ([]byte, error) {
	if media != asProtobuf {
		return encodeJSON(status)
	}
	data, err := status.Marshal()
	return envelope(statusKind, len(data), data), err
}

// send answers with an object that is in its form already; in protobuf it gets
// its envelope.
func (r *request) send(code int, kind schema.GroupVersionKind, data []byte) {
	if r.answer.media == asProtobuf {
		data = envelope(kind, len(data), data)
	}
	send(r.w, r.Request, code, r.answer.media, body{data})
}
