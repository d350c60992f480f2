package cli

import (
	"io"
	"sync"
)

// checkedWriter remembers the first error of the writer that it writes to. Printers of tables
// do not return it, so a list that did not fit on the disk would look as if it was complete.
type checkedWriter struct {
	io.Writer
	mu  sync.Mutex
	err error
}

func (w *checkedWriter) Write(data []byte) (int, error) {
	n, err := w.Writer.Write(data)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err == nil {
			w.err = err
		}
	}
	return n, err
}

func (w *checkedWriter) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
