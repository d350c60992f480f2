package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// etcd is one etcd server, which can be stopped and started again on the same
// ports, with the data it had or with older data.
//
// It is spoken to in JSON over HTTP, which it offers beside gRPC: three calls
// are not worth a client library of another version than the API server's.
type etcd struct {
	dir        string
	program    string
	clientPort int
	peerPort   int
	data       string
	restores   int
	process    *process
	http       *http.Client
}

func newEtcd(t testing.TB, dir string) *etcd {
	t.Helper()
	ports := freePorts(t, 2)
	return &etcd{
		dir:        dir,
		program:    binary(t, "etcd"),
		clientPort: ports[0],
		peerPort:   ports[1],
		data:       filepath.Join(dir, "etcd"),
		http:       &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

func (e *etcd) clientURL() string { return fmt.Sprintf("http://127.0.0.1:%d", e.clientPort) }
func (e *etcd) peerURL() string   { return fmt.Sprintf("http://127.0.0.1:%d", e.peerPort) }
func (e *etcd) members() string   { return "default=" + e.peerURL() }

// start starts the server. It does not sync its files to disk: what is killed is
// the process, never the machine.
func (e *etcd) start(t testing.TB) {
	t.Helper()
	e.process = startProcess(t, e.dir, "etcd", e.program,
		"--data-dir="+e.data,
		"--listen-client-urls="+e.clientURL(), "--advertise-client-urls="+e.clientURL(),
		"--listen-peer-urls="+e.peerURL(), "--initial-advertise-peer-urls="+e.peerURL(),
		"--initial-cluster="+e.members(),
		"--unsafe-no-fsync", "--log-level=warn")
	e.process.waitReady(t, 30*time.Second, func() error {
		_, err := e.revision()
		return err
	})
}

// revision returns the newest revision, which is what resource versions are made
// of.
func (e *etcd) revision() (int64, error) {
	var answer struct {
		Header struct{ Revision string }
	}
	// The key does not matter, every answer has the revision: "AA==" is one byte.
	if err := e.call("/v3/kv/range", map[string]any{"key": "AA==", "count_only": true}, &answer); err != nil {
		return 0, err
	}
	return strconv.ParseInt(answer.Header.Revision, 10, 64)
}

// compact forgets what was before a revision.
func (e *etcd) compact(revision int64) error {
	return e.call("/v3/kv/compaction", map[string]any{"revision": strconv.FormatInt(revision, 10), "physical": true}, &struct{}{})
}

// snapshot writes the data as it is now to a file.
func (e *etcd) snapshot(path string) (err error) {
	response, err := e.post("/v3/maintenance/snapshot", map[string]any{})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for parts := json.NewDecoder(response.Body); ; {
		var part struct {
			Result struct{ Blob []byte }
			Error  json.RawMessage
		}
		switch err := parts.Decode(&part); {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("etcd snapshot: %w", err)
		case part.Error != nil:
			return fmt.Errorf("etcd snapshot: %s", part.Error)
		}
		if _, err := file.Write(part.Result.Blob); err != nil {
			return err
		}
	}
}

// restore replaces the data by a snapshot. The server must be stopped.
func (e *etcd) restore(t testing.TB, snapshot string) {
	t.Helper()
	e.restores++
	e.data = filepath.Join(e.dir, fmt.Sprintf("etcd-restored-%d", e.restores))
	restore := exec.Command(binary(t, "etcdutl"), "snapshot", "restore", snapshot,
		"--data-dir="+e.data, "--initial-cluster="+e.members(), "--initial-advertise-peer-urls="+e.peerURL())
	if output, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("restoring etcd from %s: %v\n%s", snapshot, err, output)
	}
}

func (e *etcd) call(path string, question, answer any) error {
	response, err := e.post(path, question)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("etcd %s: %w", path, err)
	}
	return nil
}

func (e *etcd) post(path string, question any) (*http.Response, error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	response, err := e.http.Post(e.clientURL()+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return nil, fmt.Errorf("etcd %s: %s: %s", path, response.Status, text)
	}
	return response, nil
}
