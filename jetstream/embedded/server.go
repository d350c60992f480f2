package embedded

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Options say how a server runs.
type Options struct {
	// Dir is where streams are kept.
	Dir string
	// Listen is an address such as 127.0.0.1:4222. With the port 0 a free one is taken. If it
	// is empty, only this process can connect, by [Server.Option].
	Listen string
	// MaxPayload is the largest message that the server takes, 1 MiB if it is 0.
	MaxPayload int32
	// SyncAlways makes each write reach the disk before it is confirmed. Without it a server
	// that loses power may lose the last two minutes; one that is killed loses nothing.
	SyncAlways bool
}

// Server is a running server.
type Server struct {
	server *server.Server
	lock   *os.File // of the directory; nil where there are no locks
}

// startWait is how long a server may take to read its streams.
const startWait = time.Minute

// Start starts a server. It fails if another one has its streams in the directory.
func Start(o Options) (*Server, error) {
	if o.Dir == "" {
		return nil, errors.New("nats: a server needs a directory for its streams")
	}
	opts, err := o.settings()
	if err != nil {
		return nil, err
	}
	lock, err := lockDirectory(o.Dir)
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		_ = lock.Close() // nothing was written to it
		return nil, fmt.Errorf("nats: the server cannot be set up in %s: %w", o.Dir, err)
	}
	s.Start()
	running := &Server{s, lock}
	if !s.ReadyForConnections(startWait) {
		running.Stop()
		return nil, fmt.Errorf("nats: the server in %s is not ready after %s; perhaps %s is in use", o.Dir, startWait, o.Listen)
	}
	if !s.JetStreamEnabled() {
		running.Stop()
		return nil, fmt.Errorf("nats: the server in %s could not start JetStream", o.Dir)
	}
	return running, nil
}

// settings are those of the server.
func (o Options) settings() (*server.Options, error) {
	opts := &server.Options{
		ServerName: "tarn", JetStream: true, StoreDir: o.Dir, NoSigs: true, NoLog: true,
		MaxPayload: o.MaxPayload, SyncAlways: o.SyncAlways, DontListen: o.Listen == "",
	}
	if o.Listen != "" {
		host, port, err := net.SplitHostPort(o.Listen)
		if err != nil {
			return nil, fmt.Errorf("nats: the address to listen on: %w", err)
		}
		opts.Host = host
		if opts.Port, err = strconv.Atoi(port); err != nil {
			return nil, fmt.Errorf("nats: the address to listen on: %w", err)
		}
		// The server tries a port that is in use for as long as it may take to start.
		probe, err := net.Listen("tcp", o.Listen)
		if err != nil {
			return nil, fmt.Errorf("nats: it cannot listen: %w", err)
		}
		if err := probe.Close(); err != nil {
			return nil, fmt.Errorf("nats: it cannot listen: %w", err)
		}
		if opts.Port == 0 {
			opts.Port = server.RANDOM_PORT
		}
	}
	return opts, nil
}

// URL is what clients connect to; empty if the server does not listen.
func (s *Server) URL() string {
	if s.server.Addr() == nil {
		return ""
	}
	return "nats://" + s.server.Addr().String()
}

// Option connects a client of this process, without a port.
func (s *Server) Option() nats.Option { return nats.InProcessServer(s.server) }

// Stop ends the server and waits for it.
func (s *Server) Stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
	_ = s.lock.Close() // it is not written
}
