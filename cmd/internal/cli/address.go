package cli

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// checkAddress rejects an address that cannot be listened on, before anything else is done.
func checkAddress(flag, address string) (host string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", usagef("%s is host:port, such as 127.0.0.1:0, not %q", flag, address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", usagef("%s: there is no port %q; ports go from 1 to 65535, and 0 is any free one", flag, port)
	}
	return host, nil
}

// onThisMachine rejects an address at which others could reach the demonstration: everybody
// who reaches it may do everything.
func onThisMachine(flag, address string) error {
	host, err := checkAddress(flag, address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usagef("%s: the demonstration is for this machine only: listen on 127.0.0.1, not on %q", flag, host)
	}
	return nil
}

// explainListen names the flag of an address that cannot be used.
func explainListen(flag string, err error) error {
	var refused *net.OpError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: the port is taken by another program; choose another, or port 0 for a free one", flag)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: this port is for the administrator only; choose one above 1023, or port 0 for a free one", flag)
	case errors.As(err, &refused):
		return fmt.Errorf("%s: cannot listen: %w; choose an address of this machine, such as 127.0.0.1:0", flag, refused.Err)
	}
	return errors.New(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "web: "), "apiserver: "))
}
