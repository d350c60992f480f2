package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tarnproject/tarn/kube"
)

// lookEvery is how often a directory is read.
//
// Why polling, and not file system notifications: network file systems and container
// mounts do not send them, and a directory of a hundred small files is read in a
// millisecond.
const lookEvery = time.Second

// directory has a kubeconfig for each cluster. The name of a cluster is the name of its file
// without the ending; the current context is used. Files that begin with a dot, and
// directories, are not read.
type directory struct {
	path   string
	adjust func(*rest.Config)
	logger *slog.Logger
	// told has the errors that were logged, by file.
	told map[string]string
}

// InDirectory returns the fleet of the kubeconfigs in a directory, which is watched.
// adjust, if not nil, changes each config before it is used.
//
// A file that cannot be read at the start is an error. Later such a file is logged, and its
// cluster stays unchanged: editors and copies write files in several steps.
func InDirectory(path string, adjust func(*rest.Config), logger *slog.Logger) (*Fleet, error) {
	d := &directory{path: path, adjust: adjust, logger: logger, told: map[string]string{}}
	clusters, bad, err := d.read()
	if err != nil {
		return nil, err
	}
	for _, err := range bad {
		return nil, err
	}
	if len(clusters) == 0 {
		return nil, fmt.Errorf("there is no kubeconfig in %s; put one there for each cluster, called after it: east.yaml", path)
	}
	f, err := Of(clusters...)
	if err != nil {
		return nil, err
	}
	f.directory = d
	return f, nil
}

// read reads all kubeconfigs. bad has the errors of single ones, by the name of the
// cluster.
func (d *directory) read() (clusters []Cluster, bad map[string]error, err error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, nil, fmt.Errorf("the kubeconfigs cannot be read: %w", err)
	}
	bad = map[string]error{}
	files := map[string]string{}
	for _, e := range entries {
		path := filepath.Join(d.path, e.Name())
		info, err := os.Stat(path) // the target of a link: mounted Secrets are links
		if strings.HasPrefix(e.Name(), ".") || err == nil && info.IsDir() {
			continue
		}
		c, err := d.cluster(path)
		if other := files[c.Name]; other != "" {
			err = fmt.Errorf("%s and %s are both for the cluster %q; leave one of them there", other, e.Name(), c.Name)
		}
		files[c.Name] = e.Name()
		if err != nil {
			bad[c.Name] = err
			continue
		}
		clusters = append(clusters, c)
	}
	clusters = slices.DeleteFunc(clusters, func(c Cluster) bool { return bad[c.Name] != nil })
	return clusters, bad, nil
}

// cluster reads one kubeconfig.
func (d *directory) cluster(path string) (Cluster, error) {
	c := Cluster{Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return c, fmt.Errorf("the kubeconfig %s cannot be read: it is not a file", path) // a pipe may never end
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("the kubeconfig cannot be read: %w", err)
	}
	c.sum = sha256.Sum256(raw)
	if err := kube.CheckCluster(c.Name); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	// kubectl's loader is not used: in a pod it treats an empty file as the cluster of the
	// pod.
	config, err := clientcmd.LoadFromFile(path)
	if err == nil {
		err = clientcmd.ResolveLocalPaths(config)
	}
	if err == nil {
		c.Config, err = clientcmd.NewNonInteractiveClientConfig(*config, "", nil, &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}).ClientConfig()
	}
	if clientcmd.IsEmptyConfig(err) {
		err = errors.New("it is empty")
	}
	if err != nil {
		return c, fmt.Errorf("the kubeconfig %s is of no use: %w", path, err)
	}
	if d.adjust != nil {
		d.adjust(c.Config)
	}
	return c, nil
}

// follow yields what changes after before, until ctx ends.
func (d *directory) follow(ctx context.Context, before []Cluster, yield func(Change) bool) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	seen := before // at the last look
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, bad, err := d.read()
		if err != nil {
			d.tell(d.path, err)
			continue
		}
		d.tell(d.path, nil)
		for _, c := range before {
			if err := bad[c.Name]; err != nil {
				now = append(now, c) // unchanged
			}
		}
		now, seen = settled(before, seen, now), now
		for name := range d.told {
			if bad[name] == nil {
				d.tell(name, nil) // so that it is logged when it is bad again
			}
		}
		for name, err := range bad {
			d.tell(name, err)
		}
		change := difference(before, now)
		before = now
		if (len(change.Added) > 0 || len(change.Removed) > 0) && !yield(change) {
			return
		}
	}
}

// settled returns the set before, with the changes that are in now and were already in the
// last look.
//
// Why twice: editors and copies remove a file and write it again, or write it in pieces, and
// the removal of a cluster deletes all of its objects.
func settled(before, last, now []Cluster) (all []Cluster) {
	for _, c := range now {
		if old, ok := find(before, c.Name); ok && !same(last, c) {
			c = old
		} else if !ok && !same(last, c) {
			continue
		}
		all = append(all, c)
	}
	for _, old := range before {
		_, present := find(now, old.Name)
		if _, was := find(last, old.Name); was && !present {
			all = append(all, old)
		}
	}
	return sorted(all)
}

// tell logs an error when it is new.
func (d *directory) tell(what string, err error) {
	if err == nil {
		delete(d.told, what)
		return
	}
	if d.told[what] != err.Error() {
		d.told[what] = err.Error()
		d.logger.Warn("a kubeconfig cannot be used; what was known of it stays", "cluster", what, "error", err)
	}
}
