package ondisk

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// unpackFormat makes a directory as an earlier release of Tarn left it. The file has
// twenty pods and, asked for by WithSecrets, twenty Secrets.
func unpackFormat(t *testing.T, n int) string {
	t.Helper()
	packed, err := os.Open(fmt.Sprintf("testdata/format%d.db.gz", n))
	must(t, err)
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	must(t, err)
	dir := directory(t)
	must(t, os.MkdirAll(dir, 0o700))
	file, err := os.OpenFile(filepath.Join(dir, "replica.db"), os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	_, err = io.Copy(file, unpacked)
	must(t, err)
	must(t, file.Close())
	return dir
}

// A directory of the release before is built again from the server: nothing is served from
// it, and no byte of its Secrets stays. The start after that is warm.
func TestDirectoryOfFormat3(t *testing.T) {
	dir := unpackFormat(t, 3)
	if raw, err := os.ReadFile(filepath.Join(dir, "replica.db")); err != nil || !bytes.Contains(raw, []byte("tarn_collections")) {
		t.Fatalf("the file of the test is not what it should be: %v", err)
	}
	for _, start := range []struct {
		warm bool
		note string
	}{{false, "older format 3"}, {true, ""}} {
		synctest.Test(t, func(t *testing.T) {
			server := apiserver.New(apiserver.Options{AnyNamespace: true})
			defer server.Close()
			must(t, server.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "the-cluster"}}))
			fill := func() {
				for n := range 5 {
					must(t, server.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("api-", n)}}))
				}
			}
			if start.warm {
				fill()
			}
			db, err := sqlite.Open(dir, sqlite.Options{Logger: quiet})
			must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			pods, err := kube.Reflect[*corev1.Pod](ctx, server.Config(), In[*corev1.Pod](db))
			must(t, err)
			must(t, pods.WaitSynced(ctx))
			if !start.warm {
				if pods.Len() > 0 { // the server has none yet
					t.Errorf("%d pods are served from a file of an older format", pods.Len())
				}
				fill()
			}
			time.Sleep(10 * time.Second)
			health := pods.Health()
			if pods.Len() != 5 || health.Disk == nil || health.Disk.Err != nil || !strings.Contains(health.Disk.Note, start.note) || (start.note == "") != (health.Disk.Note == "") {
				t.Errorf("there are %d pods, and the disk is %+v; want a note about %q", pods.Len(), health.Disk, start.note)
			}
			cancel()
			<-pods.Done()
			must(t, db.Close())
		})
		files, err := os.ReadDir(dir)
		must(t, err)
		for _, f := range files {
			raw, err := os.ReadFile(filepath.Join(dir, f.Name()))
			must(t, err)
			if bytes.Contains(raw, []byte("swordfish")) {
				t.Errorf("%s has a Secret of the old format", f.Name())
			}
		}
	}
}

// A directory of format 4, which had no history, is used as it is, and gets what it lacks:
// its content is served, the watch resumes, and a history begins with it.
func TestDirectoryOfFormat4(t *testing.T) {
	for _, history := range []sqlite.History{{}, {Age: time.Hour}} {
		dir := unpackFormat(t, 4)
		db, err := sqlite.Open(dir, sqlite.Options{Logger: quiet, History: history})
		must(t, err)
		holdings, err := db.Holdings()
		if err != nil || len(holdings) != 1 || holdings[0].Objects != 20 || !holdings[0].Whole {
			t.Errorf("of format 4 there is %+v (%v)", holdings, err)
		}
		result, err := db.Query(t.Context(), "SELECT count(*) FROM pods WHERE node = 'node-1'", sqlite.Limits{})
		if err != nil || fmt.Sprint(result.Rows) != "[[20]]" {
			t.Errorf("SQL finds %v (%v)", result, err)
		}
		must(t, db.Close())
		report, err := sqlite.Check(t.Context(), dir, nil)
		if err != nil || !report.OK() {
			t.Errorf("check: %+v (%v)", report, err)
		}
	}
}

// A directory of format 5 is used as it is, its history included.
func TestDirectoryOfFormat5(t *testing.T) {
	dir := unpackFormat(t, 5)
	db, err := sqlite.Open(dir, sqlite.Options{Logger: quiet, History: sqlite.History{Age: 1e6 * time.Hour}})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	for statement, want := range map[string]string{
		"SELECT count(*) FROM pods":                                 "[[20]]",
		"SELECT operation, count(*) FROM pods_history GROUP BY 1":   "[[added 20] [modified 20]]",
		"SELECT count(*) FROM tarn_gaps WHERE from_version IS NULL": "[[0]]",
	} {
		result, err := db.Query(t.Context(), statement, sqlite.Limits{})
		if err != nil || fmt.Sprint(result.Rows) != want {
			t.Errorf("%s: %v (%v), want %s", statement, result.Rows, err, want)
		}
	}
}

// A directory of format 6 is used as it is. The moments of its history get checksums: every
// time is found as before, and nothing is found to be wrong.
func TestDirectoryOfFormat6(t *testing.T) {
	dir := unpackFormat(t, 6)
	db, err := sqlite.Open(dir, sqlite.Options{Logger: quiet, History: sqlite.History{Age: 1e6 * time.Hour}})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	history, err := db.Query(t.Context(), "SELECT valid_from, version FROM pods_history WHERE operation = 'modified' ORDER BY seq", sqlite.Limits{})
	if err != nil || len(history.Rows) != 20 {
		t.Fatalf("%d of 20 updates are there (%v)", len(history.Rows), err)
	}
	for n, row := range history.Rows {
		heard := time.UnixMilli(int64(row[0].(float64)*1000 + 0.5))
		for _, at := range []sqlite.Moment{{Time: heard}, {Version: tarn.Version(fmt.Sprint(row[1]))}} {
			result, err := at.Query(t.Context(), dir, "SELECT count(*) FROM pods WHERE status = 'Running'", sqlite.Limits{})
			if want := fmt.Sprintf("[[%d]]", n+1); err != nil || fmt.Sprint(result.Rows) != want {
				t.Errorf("as of %s: %v (%v), want %s", at, result, err, want)
			}
		}
	}
	report, err := sqlite.Check(t.Context(), dir, nil)
	if err != nil || !report.OK() {
		t.Errorf("check: %+v (%v)", report, err)
	}
}

// Programs that only read a directory of an older format report what to do.
func TestReadersOfOlderFormats(t *testing.T) {
	for _, format := range []int{4, 5, 6} {
		dir := unpackFormat(t, format)
		_, err1 := sqlite.OpenReader(dir, nil)
		_, err2 := sqlite.Check(t.Context(), dir, nil)
		_, err3 := sqlite.Repair(t.Context(), dir, nil)
		want := fmt.Sprintf("it has an older format, %d, and this Tarn reads format 12: start its mirror once, which takes it over in place", format)
		for _, err := range []error{err1, err2, err3} {
			if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "no more use") {
				t.Errorf("it says %v", err)
			}
		}
	}
}
