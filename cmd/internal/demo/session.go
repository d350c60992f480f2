package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// SessionOptions configure a demonstration.
type SessionOptions struct {
	Config
	// Address is where the API server listens; a free port of this machine if
	// empty.
	Address string
	// Faults puts [Trouble] of that seed between the mirror and the server.
	Faults    bool
	FaultSeed uint64
	// Disk is where the mirror is kept too; nil for memory only.
	Disk *mirror.Disk
}

// Session is a running demonstration: an API server, a simulated workload on it,
// and a mirror of its resources. It runs until Close.
type Session struct {
	Server   *apiserver.Server
	Workload *Workload
	Mirror   *mirror.Mirror
	// Began is when the mirror was started.
	Began time.Time
	// FaultyConnection is nil without faults.
	FaultyConnection *FaultyConnection
	Comparison       *Comparison

	stopWorkload, stopMirror context.CancelFunc
	running                  sync.WaitGroup
}

const (
	// bookmarks come often, so that a quiet copy is seen to be fresh.
	bookmarks = 5 * time.Second
	// silence is short, so that a viewer sees a frozen connection replaced.
	silence = 4 * bookmarks
)

// Open starts everything. ctx cancels the start; after that only Close ends the
// session.
func Open(ctx context.Context, options SessionOptions) (_ *Session, err error) {
	s := &Session{}
	options.Logger = cmp.Or(options.Logger, slog.Default())
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	// The token keeps out other users of this machine. client-go sends the one of a
	// kubeconfig over TLS only.
	serving := apiserver.Options{Address: options.Address, TLS: true, Tokens: []string{rand.Text()}, BookmarkInterval: bookmarks}
	if s.Server, err = apiserver.Start(serving); err != nil {
		return nil, err
	}
	target, err := On(s.Server)
	if err != nil {
		return nil, err
	}
	if s.Workload, err = Build(ctx, target, options.Config); err != nil {
		return nil, err
	}
	if err = s.mirrorServer(ctx, options); err != nil {
		return nil, err
	}
	s.runWorkload(options.Logger)
	return s, nil
}

// mirrorServer starts the mirror.
func (s *Session) mirrorServer(ctx context.Context, options SessionOptions) error {
	good := s.Server.Config()
	catalog, err := mirror.Discover(ctx, good)
	if err != nil {
		return err
	}
	var resources []mirror.Resource
	for _, name := range Resources() {
		r, err := catalog.Find(name)
		if err != nil {
			return err
		}
		resources = append(resources, r)
	}
	way := good
	if options.Faults {
		s.FaultyConnection = NewFaultyConnection(options.FaultSeed)
		if way, err = s.FaultyConnection.Config(good, s.initialWatch(options)); err != nil {
			return err
		}
	}
	if err := s.startMirror(ctx, way, resources, options); err != nil {
		return err
	}
	s.Comparison, err = NewComparison(s.Mirror, good)
	return err
}

// initialWatch leaves time for a large collection to arrive.
func (s *Session) initialWatch(options SessionOptions) time.Duration {
	return 15*time.Second + time.Duration(options.Pods)*2*time.Millisecond
}

func (s *Session) startMirror(ctx context.Context, way *rest.Config, resources []mirror.Resource, options SessionOptions) (err error) {
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	s.Began = time.Now()
	s.Mirror, err = mirror.Start(running, way, resources, mirror.Options{
		Disk: options.Disk, Logger: options.Logger, SilenceLimit: silence,
		OnError: func(table string, err error) { options.Logger.Info("copy failed", "resource", table, "error", err) },
	})
	if err != nil {
		end()
		return err
	}
	s.stopMirror = end
	return nil
}

// runWorkload runs the workload, and makes it react to other users.
func (s *Session) runWorkload(logger *slog.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	s.stopWorkload = cancel
	s.running.Go(func() { s.Workload.Run(ctx) })
	s.running.Go(func() {
		if err := s.Workload.WatchOthers(ctx, s.Server.Config()); err != nil && !errors.Is(err, context.Canceled) {
			logger.Warn("the demonstration does not see what others do to its cluster", "error", err)
		}
	})
}

// StopWorkload stops all writes and all faults. The mirror keeps running.
func (s *Session) StopWorkload() {
	if s.stopWorkload != nil {
		s.stopWorkload()
	}
	s.running.Wait()
	if s.FaultyConnection != nil {
		s.FaultyConnection.End()
	}
}

// Close stops everything, and waits for the end of all goroutines.
func (s *Session) Close() {
	s.StopWorkload()
	if s.stopMirror != nil {
		s.stopMirror()
		<-s.Mirror.Done()
	}
	if s.Server != nil {
		s.Server.Close()
	}
}
