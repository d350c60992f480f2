package cli

import (
	"flag"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// logging holds the flags for logs, and the destination of logs.
type logging struct {
	level, format string
	sink          logSink
}

func (l *logging) bind(flags *pflag.FlagSet) {
	flags.StringVar(&l.level, "log-level", "warn", "lowest level to log: debug, info, warn, error")
	flags.StringVar(&l.format, "log-format", "text", "format of the log: text or json")
}

// startLogging creates the logger, and makes client-go use it too.
func (a *app) startLogging() error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logging.level)); err != nil {
		return usagef("--log-level is debug, info, warn or error, not %q", a.logging.level)
	}
	a.logging.sink.redirect(a.errOut)
	options := &slog.HandlerOptions{Level: level}
	switch strings.ToLower(a.logging.format) {
	case "text":
		a.logger = slog.New(slog.NewTextHandler(&a.logging.sink, options))
	case "json":
		a.logger = slog.New(slog.NewJSONHandler(&a.logging.sink, options))
	default:
		return usagef("--log-format is text or json, not %q", a.logging.format)
	}
	if a.klog != nil {
		a.klog(a.logger)
		setKlogVerbosity(level)
	}
	return nil
}

// setKlogVerbosity enables client-go's details at debug level, but not beyond 4: from 8 on it
// logs the bodies of answers, and Secrets with them.
func setKlogVerbosity(level slog.Level) {
	if level > slog.LevelDebug {
		return
	}
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	_ = flags.Set("v", "4")
}

// logSink is where the logger writes. A live view redirects it, so that a log line appears
// above the view and not in the middle of it.
type logSink struct {
	mu sync.Mutex
	to io.Writer
}

func (s *logSink) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(line)
}

// redirect changes the writer and returns the previous one.
func (s *logSink) redirect(to io.Writer) io.Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.to
	s.to = to
	return before
}
