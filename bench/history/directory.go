package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

// directory is a directory that is open for writing.
type directory struct {
	path string
	db   *sqlite.DB
	sink tarn.Sink[*corev1.Pod]
}

// unbounded keeps all that is written here.
var unbounded = sqlite.History{Age: 10_000 * time.Hour}

func open(path string, of kube.Origin, h sqlite.History) (*directory, error) {
	db, err := sqlite.Open(path, sqlite.Options{History: h, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	sink, err := ondisk.Sink[*corev1.Pod](db, of)
	if err != nil {
		db.Close()
		return nil, err
	}
	return &directory{path, db, sink}, nil
}

func (d *directory) close() error {
	d.sink.Close()
	return d.db.Close()
}

// build brings a directory to a number of updates. A new one is a copy of another with
// fewer, if there is one. What was built before is used, also if it was interrupted.
func build(ctx context.Context, path, from string, of kube.Origin, l *load, n int) error {
	if _, err := os.Stat(filepath.Join(path, fileName)); os.IsNotExist(err) {
		if from != "" {
			err = copyDirectory(path, from)
		} else {
			err = start(ctx, path, of, l, unbounded)
		}
		if err != nil {
			return err
		}
	}
	// One of an older format is taken over by the program that writes it.
	d, err := open(path, of, unbounded)
	if err == nil {
		err = d.close()
	}
	if err != nil {
		return err
	}
	made, err := l.madeIn(ctx, path)
	if err != nil {
		return err
	}
	if l.made > made {
		return fmt.Errorf("%s has %d updates, and %d were made already: remove it", path, made, l.made)
	}
	l.skip(made)
	if made >= n {
		return nil
	}
	if d, err = open(path, of, unbounded); err != nil {
		return err
	}
	began, reported := time.Now(), time.Now()
	for l.made < n {
		if err := d.sink.Commit(ctx, l.batch(min(*group, n-l.made))); err != nil {
			d.close()
			return err
		}
		if time.Since(reported) > 30*time.Second {
			reported = time.Now()
			progress("%s: %d updates after %s, %d MiB", filepath.Base(path), l.made, time.Since(began).Round(time.Second), sizeOf(path)>>20)
		}
	}
	return d.close()
}

const fileName = "replica.db"

// start makes a directory with the first state.
func start(ctx context.Context, path string, of kube.Origin, l *load, h sqlite.History) error {
	d, err := open(path, of, h)
	if err != nil {
		return err
	}
	if err := d.sink.Commit(ctx, l.first()); err != nil {
		d.close()
		return err
	}
	return d.close()
}

// madeIn is how many updates a directory has, by its version.
func (l *load) madeIn(ctx context.Context, path string) (int, error) {
	reader, err := sqlite.OpenReader(path, nil)
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	h, err := reader.State(ctx, "pods")
	if err != nil {
		return 0, err
	}
	version, err := strconv.Atoi(string(h.Version))
	return version - l.set.Version, err
}

func copyDirectory(to, from string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	return copyFile(filepath.Join(to, fileName), filepath.Join(from, fileName))
}

func copyFile(to, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return err
	}
	return target.Close()
}

func sizeOf(path string) (n int64) {
	for _, name := range []string{fileName, fileName + "-wal"} {
		if info, err := os.Stat(filepath.Join(path, name)); err == nil {
			n += info.Size()
		}
	}
	return n
}

// progress prints a line on standard error, for people who wait for the result.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
