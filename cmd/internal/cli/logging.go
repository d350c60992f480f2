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

// logging is the flags about logs, and where logs go.
type logging struct {
	level, format string
	sink          logSink
}

func (l *logging) bind(flags *pflag.FlagSet) {
	flags.StringVar(&l.level, "log-level", "warn", "what is logged: debug, info, warn, error")
	flags.StringVar(&l.format, "log-format", "text", "how it is logged: text or json")
}

// startLogging makes the logger, and has client-go use it too.
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

// setKlogVerbosity lets client-go's details through at debug level. Not beyond
// 4: from 8 on it logs the bodies of answers, and with them Secrets.
func setKlogVerbosity(level slog.Level) {
	if level > slog.LevelDebug {
		return
	}
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	_ = flags.Set("v", "4")
}

// logSink is where the logger writes. A live view redirects it, so that a log
// line comes to stand above what is drawn and not in the midst of it.
type logSink struct {
	mu sync.Mutex
	to io.Writer
}

func (s *logSink) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(line)
}

// redirect returns the writer that was there before.
func (s *logSink) redirect(to io.Writer) io.Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.to
	s.to = to
	return before
}
