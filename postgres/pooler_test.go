package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/pgtest"
	"github.com/tarnproject/tarn/kube/columns"
)

// pooler passes clients on to a few sessions of a server, as PgBouncer does in the pool mode
// transaction: a client keeps a session until the server says that it is in no transaction,
// and has the next one afterwards.
type pooler struct {
	listener net.Listener
	sessions chan net.Conn
	running  sync.WaitGroup

	mu      sync.Mutex
	clients []net.Conn
	refused []string
}

// startPooler passes clients on to sessions of a database until the test ends.
func startPooler(t *testing.T, socket, database string, sessions int) *pooler {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &pooler{listener: listener, sessions: make(chan net.Conn, sessions)}
	for range sessions {
		conn, err := net.Dial("unix", socket)
		must(t, err)
		startup := append(binary.BigEndian.AppendUint32(nil, 3<<16), "user\x00tarn\x00database\x00"+database+"\x00\x00"...)
		_, err = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(startup)+4)), startup...))
		must(t, err)
		for kind := byte(0); kind != 'Z'; {
			kind, _, err = readFrame(conn)
			must(t, err)
		}
		p.sessions <- conn
	}
	p.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			p.mu.Lock()
			p.clients = append(p.clients, client)
			p.mu.Unlock()
			p.running.Go(func() {
				defer client.Close()
				p.serve(client)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for _, c := range p.clients {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.running.Wait()
		for range sessions {
			_ = (<-p.sessions).Close()
		}
		if len(p.refused) > 0 {
			t.Errorf("PgBouncer does not know the parameters %q", p.refused)
		}
	})
	return p
}

// readFrame reads a message: its kind, and all of it.
func readFrame(r io.Reader) (kind byte, frame []byte, err error) {
	frame = make([]byte, 5)
	if _, err = io.ReadFull(r, frame); err != nil {
		return 0, nil, err
	}
	frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame[1:])-4)...)
	_, err = io.ReadFull(r, frame[5:])
	return frame[0], frame, err
}

// serve passes the transactions of a client on, each to another session.
func (p *pooler) serve(client net.Conn) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(client, head); err != nil {
		return
	}
	parameters := make([]byte, binary.BigEndian.Uint32(head)-8)
	if _, err := io.ReadFull(client, parameters); err != nil {
		return
	}
	for i, name := range strings.Split(string(parameters), "\x00") {
		if known := []string{"", "user", "database", "application_name", "client_encoding"}; i%2 == 0 && !slices.Contains(known, name) {
			p.mu.Lock()
			p.refused = append(p.refused, name)
			p.mu.Unlock()
			return
		}
	}
	if _, err := client.Write([]byte("R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I")); err != nil {
		return
	}
	for p.transaction(client) == nil {
	}
}

// transaction passes one transaction on, and gives its session back.
func (p *pooler) transaction(client net.Conn) error {
	kind, frame, err := readFrame(client)
	if err != nil || kind == 'X' {
		return io.EOF
	}
	session := <-p.sessions
	defer func() { p.sessions <- session }()
	for {
		if _, err := session.Write(frame); err != nil {
			return err
		}
		// A client says nothing between a query or sync and its answer, except for a COPY.
		if kind == 'Q' || kind == 'S' || kind == 'c' {
			done, err := answer(session, client)
			if err != nil || done {
				return err
			}
		}
		if kind, frame, err = readFrame(client); err != nil {
			return errors.Join(err, abort(session))
		}
	}
}

// answer passes the answers of a session on, and says whether a transaction has ended.
func answer(session, client net.Conn) (done bool, err error) {
	for {
		kind, frame, err := readFrame(session)
		if err != nil {
			return false, err
		}
		if _, err := client.Write(frame); err != nil {
			return false, errors.Join(err, abort(session))
		}
		switch kind {
		case 'Z':
			return frame[5] == 'I', nil
		case 'G':
			return false, nil // it waits for the rows of a COPY
		}
	}
}

// abort ends the transaction of a client that has gone.
func abort(session net.Conn) error {
	if _, err := session.Write([]byte("Q\x00\x00\x00\x0DROLLBACK\x00")); err != nil {
		return err
	}
	for {
		if kind, _, err := readFrame(session); err != nil || kind == 'Z' {
			return err
		}
	}
}

// Behind a pooler, where each transaction may be in another session, feeders of two clusters
// write, quarantine, change columns, and take over as they do without.
func TestTransactionPooling(t *testing.T) {
	if server == nil {
		t.Skip(pgtest.ErrNotInstalled)
	}
	name := newName()
	direct, err := server.Create(name)
	must(t, err)
	p := startPooler(t, server.Socket(), name, 3)
	address := fmt.Sprintf("postgres://tarn@%s/%s?sslmode=disable", p.listener.Addr(), name)
	options := Options{History: true, HistoryAge: time.Hour, Lease: time.Second}
	db := connect(t, address, options)
	s := NewSink(db, "things", "all", raw{})
	must(t, open(t.Context(), s))
	must(t, s.Commit(t.Context(), whole(batch("2", thing("a", "1", `{}`), thing("b", "2", `{}`)))))
	for i := range 12 {
		v := tarn.Version(fmt.Sprint(i + 10))
		must(t, s.Commit(t.Context(), batch(v, thing("a", v, fmt.Sprint(i)))))
	}
	if err := s.Commit(t.Context(), batch("31", thing("bad", "30", `{"a": 1e400000}`), thing("c", "31", `{}`))); !tarn.Taken(err) || err == nil {
		t.Errorf("a state that is refused: %v", err)
	}
	other := options
	other.Cluster = "other"
	two := connect(t, address, other)
	wider := NewSink(two, "things", "all", wide{more: []columns.Column{{Name: "size", Type: "INTEGER"}}})
	must(t, open(t.Context(), wider))
	t.Cleanup(wider.Close)
	must(t, wider.Commit(t.Context(), whole(batch("5", thing("a", "5", "")))))
	s.lostBy(t, batch("32", thing("a", "32", `{}`)), whole(batch("32", thing("a", "32", `{}`), thing("c", "31", `{}`))))
	eventually(t, "a heartbeat", func() bool {
		return db.query(t, "SELECT lease_until > committed + interval '1100 ms' FROM tarn_feeds WHERE cluster = 'default'")[0] == "true"
	})
	s.Close()
	again := NewSink(connect(t, address, options), "things", "all", raw{})
	must(t, open(t.Context(), again))
	t.Cleanup(again.Close)
	deleted := gone("c", "33")
	deleted.Object.Text = `{}`
	must(t, again.Commit(t.Context(), batch("33", deleted)))
	plain := connect(t, direct, Options{})
	plain.wants(t, "SELECT cluster, key, resource_version, size FROM things ORDER BY cluster, key", "default|a|32|", "other|a|5|7")
	plain.wants(t, "SELECT count(*), count(DISTINCT seq), count(*) FILTER (WHERE problem IS NOT NULL) FROM things_history WHERE cluster = 'default'", "19|19|1")
}
