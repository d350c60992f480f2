package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// newServer is for a server whose profiles are at an address of their own, or at its own if
// that is empty.
func newServer(name, kubeconfig string, pid int, profiles string) (*server, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // not limited
	s := &server{name: name, config: config, profiles: cmp.Or(profiles, config.Host), process: process{pid}}
	if _, err := s.cpu(); err != nil {
		return nil, fmt.Errorf("the process of the %s: %w", name, err)
	}
	return s, nil
}

// protobuf returns the config of clients that read and write protobuf.
func (s *server) protobuf() *rest.Config {
	config := rest.CopyConfig(s.config)
	config.ContentType = protobufType
	return config
}

// process is one of another program, as Linux shows it.
type process struct{ pid int }

// tick is the unit of /proc/PID/stat, which is the same on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// cpu is the time that the process has computed.
func (p process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may have spaces in it. After it, utime is the 12th field.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has only %d fields", p.pid, len(fields))
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", p.pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// resident is the resident size, and peak the largest one since resetPeak.
func (p process) resident() int64 { return p.size("VmRSS") }
func (p process) peak() int64     { return p.size("VmHWM") }

func (p process) resetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid), []byte("5"), 0o200)
}

func (p process) size(name string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// profile asks the process for one of Go's profiles.
func (s *server) profile(ctx context.Context, name string) ([]byte, error) {
	client, err := rest.HTTPClientFor(s.config)
	if err != nil {
		return nil, err
	}
	address := s.profiles + "/debug/pprof/" + name
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", address, response.Status)
	}
	return body, err
}

var heapLines = regexp.MustCompile(`(?m)^# (?:HeapAlloc|Stack) = (\d+)`)

// live is what the process holds after a garbage collection, stacks included. Unlike the
// resident size, it does not depend on what was freed before.
func (s *server) live(ctx context.Context) (int64, error) {
	body, err := s.profile(ctx, "heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	var sum int64
	found := heapLines.FindAllSubmatch(body, -1)
	for _, line := range found {
		n, err := strconv.ParseInt(string(line[1]), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	if len(found) != 2 {
		return 0, fmt.Errorf("%s: the profile of the heap says nothing of its size", s.name)
	}
	return sum, nil
}
