package cli

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
)

// socketPrefix begins an address that is a socket in the file system: agents of a node
// reach the relay of their node by it, and nobody else does.
const socketPrefix = "unix:"

// checkRelayAddress returns the host of an address, empty for a socket.
func checkRelayAddress(address string) (host string, err error) {
	path, socket := strings.CutPrefix(address, socketPrefix)
	switch {
	case socket && path == "":
		return "", usagef("--listen unix: needs the path of a socket, such as unix:/run/tarn/relay.sock")
	case socket:
		return "", nil
	}
	host, err = checkAddress("--listen", address)
	if err == nil && host == "" {
		host = "0.0.0.0" // all of them
	}
	return host, err
}

// listenForRelay listens at an address. It replaces a socket that a killed process left
// behind, but not one at which a process answers.
func listenForRelay(address string) (net.Listener, error) {
	path, socket := strings.CutPrefix(address, socketPrefix)
	if !socket {
		return net.Listen("tcp", address)
	}
	listener, err := net.Listen("unix", path)
	if !errors.Is(err, syscall.EADDRINUSE) || !isAbandoned(path) {
		return listener, err
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	return net.Listen("unix", path)
}

func isAbandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return false
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
