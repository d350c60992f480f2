package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// A profiling is a profile of a server's CPU that is being taken.
type profiling struct {
	done chan struct{}
	// encrypted is the share of the samples that were taken in encryption.
	encrypted float64
	err       error
}

// profileFor takes a profile. Both servers are profiled, so that it costs both.
func (s *server) profileFor(ctx context.Context, length time.Duration) *profiling {
	p := &profiling{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.encrypted, p.err = s.encryptedShare(ctx, length)
		if p.err != nil {
			p.err = fmt.Errorf("profile of the %s: %w", s.name, p.err)
		}
	}()
	return p
}

// wait returns the share of encryption.
func (p *profiling) wait() (float64, error) {
	<-p.done
	return p.encrypted, p.err
}

// encryptedShare is the part of its CPU that a server spends in package crypto/tls itself
// and in ciphers. It does not count what the connection costs without TLS as well: the
// writes to the socket, which crypto/tls calls.
func (s *server) encryptedShare(ctx context.Context, length time.Duration) (float64, error) {
	raw, err := s.profile(ctx, fmt.Sprintf("profile?seconds=%d", int(length.Seconds())))
	if err != nil {
		return 0, err
	}
	if *profiles != "" {
		file := filepath.Join(*profiles, fmt.Sprintf("%s-%s.pprof", s.name, time.Now().Format("150405")))
		if err := os.WriteFile(file, raw, 0o644); err != nil {
			return 0, err
		}
	}
	found, err := profile.ParseData(raw)
	if err != nil {
		return 0, err
	}
	var all, encrypted int64
	for _, sample := range found.Sample {
		n := sample.Value[0]
		all += n
		if encrypts(sample) {
			encrypted += n
		}
	}
	return float64(encrypted) / float64(max(all, 1)), nil
}

// encrypts says whether a sample was taken in encryption: in a function of crypto, or in
// one that it called and that is not the connection below.
func encrypts(sample *profile.Sample) bool {
	for _, location := range sample.Location { // from the inside out
		for _, line := range location.Line {
			name := line.Function.Name
			switch {
			case strings.HasPrefix(name, "crypto/"):
				return true
			case strings.HasPrefix(name, "net."), strings.HasPrefix(name, "internal/poll."):
				return false
			}
		}
	}
	return false
}
