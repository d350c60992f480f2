package contender

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/bench/replay"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

// onDisk are the contenders that keep their copy on disk too. The first of each pair
// begins with an empty folder and leaves what the second begins with.
func onDisk() []Contender {
	return []Contender{
		{Name: "tarn disk first", Doc: "kube.Reflect with a disk behind the memory, begun without a file", Format: replay.Protobuf, Leaves: "behind", Start: startDisk("behind")},
		{Name: "tarn disk", Doc: "the same, begun with the file that the first left", Format: replay.Protobuf, Start: startDisk("behind")},
		{Name: "tarn disk only first", Doc: "kube.Reflect with the disk as its only store, begun without a file", Format: replay.Protobuf, Leaves: "only", Start: startDisk("only", ondisk.Only())},
		{Name: "tarn disk only", Doc: "the same, begun with the file that the first left", Format: replay.Protobuf, Start: startDisk("only", ondisk.Only())},
	}
}

func startDisk(folder string, opts ...ondisk.Option) func(context.Context, Setup) (Copy, error) {
	return func(ctx context.Context, s Setup) (Copy, error) {
		db, err := sqlite.Open(filepath.Join(s.Folder, folder), sqlite.Options{})
		if err != nil {
			return Copy{}, err
		}
		pods, err := kube.Reflect[*corev1.Pod](ctx, s.Config, ondisk.In[*corev1.Pod](db, opts...))
		c, err := follow(pods, err, s)
		if err != nil {
			return Copy{}, err
		}
		c.Settled = func(ctx context.Context) error {
			for wait := time.NewTicker(10 * time.Millisecond); pods.Health().Disk.Pending > 0; {
				select {
				case <-wait.C:
				case <-ctx.Done():
					return fmt.Errorf("%s: %w", pods.Health().Disk, context.Cause(ctx))
				}
			}
			return db.Flush()
		}
		c.Close = db.Close
		c.Leave = func(ctx context.Context) (disk, json int64, err error) {
			found, err := db.Query(ctx, "SELECT sum(length(CAST(object AS BLOB))) FROM pods", sqlite.Limits{Time: time.Minute})
			if err != nil {
				return 0, 0, err
			}
			json, ok := found.Rows[0][0].(int64)
			if !ok {
				return 0, 0, fmt.Errorf("the JSON of all pods has %v bytes", found.Rows[0][0])
			}
			if err := db.Close(); err != nil {
				return 0, 0, err
			}
			files, err := os.ReadDir(db.Dir())
			if err != nil {
				return 0, 0, err
			}
			for _, f := range files {
				info, err := f.Info()
				if err != nil {
					return 0, 0, err
				}
				disk += info.Size()
			}
			return disk, json, nil
		}
		return c, nil
	}
}
