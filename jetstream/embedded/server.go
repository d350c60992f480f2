package embedded

import (
	"errors"
	"fmt"
	"net"
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
	// SyncAlways has each write reach the disk before it is confirmed. Without it a server
	// that loses power may lose the last two minutes; one that is killed loses nothing.
	SyncAlways bool
}

// Server is a running server.
type Server struct{ server *server.Server }

// startWait is how long a server may take to read its streams.
const startWait = time.Minute

// Start starts a server.
func Start(o Options) (*Server, error) {
	if o.Dir == "" {
		return nil, errors.New("nats: a server needs a directory for its streams")
	}
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
		if opts.Port == 0 {
			opts.Port = server.RANDOM_PORT
		}
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("nats: the server cannot be set up in %s: %w", o.Dir, err)
	}
	s.Start()
	running := &Server{s}
	if !s.ReadyForConnections(startWait) {
		running.Stop()
		return nil, fmt.Errorf("nats: the server in %s is not ready after %s; perhaps %s is in use", o.Dir, startWait, o.Listen)
	}
	if !s.JetStreamEnabled() {
		running.Stop()
		return nil, fmt.Errorf("nats: the server in %s could not start JetStream; perhaps another one uses the directory", o.Dir)
	}
	return running, nil
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
}
