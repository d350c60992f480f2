package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/enginetest"
	"github.com/tarnproject/tarn/internal/pgtest"
	"github.com/tarnproject/tarn/internal/proxytest"
	"github.com/tarnproject/tarn/kube"
)

// hindered is an engine that is fed at an address.
func hindered(t *testing.T, address string) (enginetest.Hindered, *DB) {
	t.Helper()
	const states = 200
	db := connect(t, address, Options{History: true, MaxBytes: states * waitingSize})
	follow := func(ctx context.Context, cluster *rest.Config) (*tarn.Replica[*corev1.ConfigMap], error) {
		return kube.Reflect[*corev1.ConfigMap](ctx, cluster, In[*corev1.ConfigMap](db))
	}
	return enginetest.Hindered{Engine: readable(db), Follow: follow, Bound: states * waitingSize, States: states}, db
}

// A server behind a slow network costs a bounded amount of memory. Health says how far behind
// it is, and afterwards it has everything, or a mark of what was folded.
func TestSlowNetwork(t *testing.T) {
	direct := database(t)
	proxy := proxytest.Start(t, "unix", server.Socket())
	_, schema, _ := strings.Cut(direct, "&search_path=")
	e, _ := hindered(t, "postgres://tarn@"+proxy.Address()+"/postgres?sslmode=disable&search_path="+schema)
	e.Engine = readable(connect(t, direct, Options{}))
	e.Hinder = func() { proxy.Limit(20 << 10) }
	e.Relieve = func() { proxy.Limit(0) }
	t.Log(enginetest.RunHindered(t, e))
}

// The same holds of a server that says that its disk is full.
func TestDiskFullError(t *testing.T) {
	e, db := hindered(t, database(t))
	e.Fails = true
	e.Hinder = func() {
		_, err := db.pool.Exec(t.Context(), `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
			$$BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END$$;
			CREATE TRIGGER full_disk BEFORE INSERT ON configmaps_history EXECUTE FUNCTION refuse()`)
		must(t, err)
	}
	e.Relieve = func() {
		_, err := db.pool.Exec(t.Context(), `DROP TRIGGER full_disk ON configmaps_history`)
		must(t, err)
	}
	t.Log(enginetest.RunHindered(t, e))
}

// smallDisk mounts a disk of some mebibytes that a server may write to, until the test ends.
func smallDisk(t *testing.T, of *pgtest.Server, size int) string {
	t.Helper()
	owner, err := os.Stat(filepath.Dir(of.Socket()))
	must(t, err)
	id, ok := owner.Sys().(*syscall.Stat_t)
	if !ok || os.Getuid() != 0 {
		t.Skip("only root can mount a disk")
	}
	dir, err := os.MkdirTemp("", "tarn-disk-")
	must(t, err)
	t.Cleanup(func() { must(t, os.Remove(dir)) })
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm,mode=0700,uid=%d,gid=%d", size, id.Uid, id.Gid), "tarn-test", dir).CombinedOutput(); err != nil {
		t.Skipf("a disk cannot be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}

// fill writes a file until the disk is full.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for piece := make([]byte, 4<<10); err == nil; {
		_, err = f.Write(piece)
	}
	if errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	return err
}

// The same holds of a real disk that is full, and has room again.
func TestFullDisk(t *testing.T) {
	if server == nil {
		t.Skip(pgtest.ErrNotInstalled)
	}
	disk := smallDisk(t, server, 32)
	own, err := pgtest.New()
	must(t, err)
	defer func() { must(t, own.Close()) }()
	admin, err := Connect(own.URL("postgres"), Options{})
	must(t, err)
	_, err = admin.pool.Exec(t.Context(), "CREATE TABLESPACE small LOCATION '"+disk+"'")
	admin.Close()
	must(t, err)
	e, _ := hindered(t, own.URL("postgres")+"&default_tablespace=small")
	filler := filepath.Join(disk, "filler")
	e.Fails = true
	e.Hinder = func() { must(t, fill(filler)) }
	e.Relieve = func() { must(t, os.Remove(filler)) }
	t.Log(enginetest.RunHindered(t, e))
}
