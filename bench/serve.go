package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/tarnproject/tarn/bench/replay"
)

// serve is the child that is a replay server. It says its [address] in one line on
// out when everything is encoded, and ends when in does: with its parent, however
// that ends.
func serve(c replay.Config, in io.Reader, out io.Writer) error {
	server, err := replay.New(c)
	if err != nil {
		return fmt.Errorf("replay server: %w", err)
	}
	debug.FreeOSMemory() // garbage of the encoding
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("replay server: %w", err)
	}
	at := address{URL: "http://" + listener.Addr().String()}
	if c.TLS {
		var secure *http.Server
		if secure, at.Secure, at.CA, err = serveSecure(server); err != nil {
			return fmt.Errorf("replay server: %w", err)
		}
		defer secure.Close()
	}
	if err := json.NewEncoder(out).Encode(at); err != nil {
		return fmt.Errorf("replay server: %w", err)
	}
	go func() {
		io.Copy(io.Discard, in)
		listener.Close()
	}()
	if err := http.Serve(listener, server); !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("replay server: %w", err)
	}
	return nil
}

// startServer has a child serve, and returns its address. The returned function
// ends it.
func startServer(ctx context.Context, c replay.Config) (at address, stop func(), err error) {
	t := task{Scenario: "replay server", Contender: string(c.Kind), Serve: &c}
	child, err := newChild(ctx, t, nil)
	if err != nil {
		return at, nil, err
	}
	var stderr strings.Builder
	child.Stderr = &stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		return at, nil, fmt.Errorf("replay server: %w", err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		return at, nil, fmt.Errorf("replay server: %w", err)
	}
	if err := child.Start(); err != nil {
		return at, nil, fmt.Errorf("replay server: %w", err)
	}
	stop = func() {
		stdin.Close()
		child.Wait()
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	if err != nil {
		stop()
		return at, nil, fmt.Errorf("replay server: it ended before it served: %s", stderr.String())
	}
	return at, stop, nil
}
