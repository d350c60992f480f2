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

// StageOptions say what is to be shown.
type StageOptions struct {
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

// Stage is a demonstration: an API server, the life on it, and a mirror of it
// all. It runs until Close.
type Stage struct {
	Server   *apiserver.Server
	Workload *Workload
	Mirror   *mirror.Mirror
	// Began is when the mirror was started.
	Began time.Time
	// Trouble is nil without faults.
	Trouble    *Trouble
	Comparison *Comparison

	rest, end context.CancelFunc
	living    sync.WaitGroup
}

const (
	// bookmarks come often, so that a quiet copy is seen to be fresh.
	bookmarks = 5 * time.Second
	// silence is short, so that the audience of a demonstration sees a frozen
	// connection replaced.
	silence = 4 * bookmarks
)

// Open puts everything up. Until it has, ctx ends it; later only Close does.
func Open(ctx context.Context, options StageOptions) (_ *Stage, err error) {
	s := &Stage{}
	options.Logger = cmp.Or(options.Logger, slog.Default())
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	// Other users of this machine have no part in it.
	serving := apiserver.Options{Address: options.Address, TLS: options.Faults, Tokens: []string{rand.Text()}, BookmarkInterval: bookmarks}
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
	if err = s.reflect(ctx, options); err != nil {
		return nil, err
	}
	s.live(options.Logger)
	return s, nil
}

// reflect starts the mirror.
func (s *Stage) reflect(ctx context.Context, options StageOptions) error {
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
		s.Trouble = NewTrouble(options.FaultSeed)
		if way, err = s.Trouble.Config(good, s.initialWatch(options)); err != nil {
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
func (s *Stage) initialWatch(options StageOptions) time.Duration {
	return 15*time.Second + time.Duration(options.Pods)*2*time.Millisecond
}

func (s *Stage) startMirror(ctx context.Context, way *rest.Config, resources []mirror.Resource, options StageOptions) (err error) {
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
	s.end = end
	return nil
}

// live lets the workload run, and heed others.
func (s *Stage) live(logger *slog.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	s.rest = cancel
	s.living.Go(func() { s.Workload.Run(ctx) })
	s.living.Go(func() {
		if err := s.Workload.Heed(ctx, s.Server.Config()); err != nil && !errors.Is(err, context.Canceled) {
			logger.Warn("the demonstration does not see what others do to its cluster", "error", err)
		}
	})
}

// Rest ends the activity on the server, and all faults. The mirror keeps running.
func (s *Stage) Rest() {
	if s.rest != nil {
		s.rest()
	}
	s.living.Wait()
	if s.Trouble != nil {
		s.Trouble.End()
	}
}

// Close ends everything, and returns when nothing is left.
func (s *Stage) Close() {
	s.Rest()
	if s.end != nil {
		s.end()
		<-s.Mirror.Done()
	}
	if s.Server != nil {
		s.Server.Close()
	}
}
