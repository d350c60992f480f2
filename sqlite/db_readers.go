package sqlite

import (
	"errors"
	"sync"

	"github.com/ncruces/go-sqlite3"
)

// maxIdle is how many unused connections stay open.
const maxIdle = 4

// reader is a connection that only reads, with its statements.
type reader struct {
	conn  *sqlite3.Conn
	epoch int
	stmts map[string]*sqlite3.Stmt
}

// stmt prepares a statement once.
func (r *reader) stmt(sql string) (*sqlite3.Stmt, error) {
	if s, ok := r.stmts[sql]; ok {
		return s, nil
	}
	s, _, err := r.conn.Prepare(sql)
	if err != nil {
		return nil, err
	}
	r.stmts[sql] = s
	return s, nil
}

func (r *reader) query(sql string, each func(row *sqlite3.Stmt) error, args ...any) error {
	s, err := r.stmt(sql)
	if err != nil {
		return err
	}
	return run(s, each, args...)
}

// readers is a pool of connections: one for each concurrent read, and a few idle ones.
type readers struct {
	open func() (*sqlite3.Conn, error)

	mu     sync.Mutex
	idle   []*reader
	epoch  int
	closed bool
}

var errClosed = errors.New("the store has been closed")

// with calls a function with a connection. A connection that failed is not used again.
func (p *readers) with(read func(*reader) error) error {
	r, err := p.take()
	if err != nil {
		return err
	}
	good := false
	defer func() { p.giveBack(r, good) }()
	err = read(r)
	good = err == nil
	return err
}

func (p *readers) take() (*reader, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	if n := len(p.idle); n > 0 {
		r := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return r, nil
	}
	epoch := p.epoch
	p.mu.Unlock()
	conn, err := p.open()
	if err != nil {
		return nil, err
	}
	return &reader{conn: conn, epoch: epoch, stmts: map[string]*sqlite3.Stmt{}}, nil
}

func (p *readers) giveBack(r *reader, good bool) {
	p.mu.Lock()
	if good && !p.closed && r.epoch == p.epoch && len(p.idle) < maxIdle {
		p.idle = append(p.idle, r)
		r = nil
	}
	p.mu.Unlock()
	if r != nil {
		r.close()
	}
}

// close ends a connection, which only read.
func (r *reader) close() {
	_ = closeAll(r.conn)
}

// renew closes the connections to a file that was removed.
func (p *readers) renew() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.epoch++
	p.mu.Unlock()
	for _, r := range idle {
		r.close()
	}
}

func (p *readers) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.renew()
}

// openReader opens a connection that only reads.
func (db *DB) openReader() (*sqlite3.Conn, error) {
	conn, err := db.connect(sqlite3.OPEN_READONLY)
	if err != nil {
		return nil, err
	}
	if err := first(distrust(conn), conn.Exec("PRAGMA query_only=1; PRAGMA temp_store=MEMORY")); err != nil {
		return nil, first(err, closeAll(conn))
	}
	return conn, nil
}
