//go:build unix

package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// ErrNotInstalled says that there is no server to test with.
var ErrNotInstalled = errors.New("there is no PostgreSQL server here: install Debian's package postgresql, or put its programs into the PATH")

// Server is a PostgreSQL server of a test.
type Server struct {
	programs, dir string
	settings      []string
	as            *syscall.Credential
	process       *exec.Cmd
	ended         chan struct{}
	log           *os.File
}

// New makes a server and starts it. Settings are those of postgresql.conf, such as
// "max_connections=20". Close ends it and removes its files.
func New(settings ...string) (*Server, error) {
	programs, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{programs: programs, settings: settings}
	if s.as, err = ordinary(); err != nil {
		return nil, err
	}
	// The path of a socket is short.
	if s.dir, err = os.MkdirTemp("", "pg"); err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// find is the folder of the server's programs.
func find() (string, error) {
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres"); err == nil && len(found) > 0 {
		return filepath.Dir(slices.Max(found)), nil
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", ErrNotInstalled
}

// ordinary is the user to run the server as, nil for this one: it refuses to run as root.
func ordinary() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		known, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(known.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(known.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("this is root, as which PostgreSQL does not run, and there is neither a user postgres nor nobody")
}

func (s *Server) prepare() (err error) {
	if s.as != nil {
		if err := os.Chown(s.dir, int(s.as.Uid), int(s.as.Gid)); err != nil {
			return err
		}
	}
	if s.log, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		return err
	}
	initdb := s.command("initdb", "-D", s.data(), "-U", "tarn", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	var out bytes.Buffer
	initdb.Stdout, initdb.Stderr = &out, &out
	if err := initdb.Run(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out.Bytes())
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.programs, program), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setpgid: true}
	return cmd
}

// startTimeout is how long a server may take to start, its recovery included.
const startTimeout = time.Minute

// Start starts a server that was stopped or killed, and waits until it answers. After a
// kill it tries until the processes of the one before have ended.
func (s *Server) Start() error {
	for begun := time.Now(); time.Since(begun) < startTimeout; time.Sleep(20 * time.Millisecond) {
		if s.ended == nil {
			if err := s.launch(); err != nil {
				return err
			}
		}
		select {
		case <-s.ended:
			s.ended = nil
			continue
		default:
		}
		if s.command("pg_isready", "-q", "-h", s.dir, "-U", "tarn").Run() == nil {
			return nil
		}
	}
	written, _ := os.ReadFile(s.log.Name()) // for people to read
	return fmt.Errorf("the server did not start within %v:\n%s", startTimeout, written)
}

func (s *Server) launch() error {
	args := []string{"-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=64MB", "-c", "max_wal_size=256MB"}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	s.process = s.command("postgres", args...)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	if err := s.process.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	process := s.process
	go func() {
		_ = process.Wait() // how it ended is in its log
		close(ended)
	}()
	s.ended = ended
	return nil
}

// Kill ends the server at once, as a crash does.
func (s *Server) Kill() { s.signal(syscall.SIGKILL) }

// Stop ends the server's connections and then the server.
func (s *Server) Stop() { s.signal(syscall.SIGINT) }

func (s *Server) signal(sig syscall.Signal) {
	if s.ended == nil {
		return
	}
	_ = s.process.Process.Signal(sig) // it may have ended
	<-s.ended
	s.ended = nil
}

// Socket is the server's socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

// URL is the address of a database.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://tarn@/%s?host=%s", database, s.dir)
}

// Create makes a database and returns its address.
func (s *Server) Create(database string) (string, error) {
	out, err := s.command("createdb", "-h", s.dir, "-U", "tarn", database).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("createdb: %w: %s", err, out)
	}
	return s.URL(database), nil
}

// Close ends the server and removes its files.
func (s *Server) Close() error {
	s.Stop()
	return errors.Join(s.log.Close(), os.RemoveAll(s.dir))
}
