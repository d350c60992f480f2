// Program shards measures what one shard of several costs beside a copy of everything: heap
// and CPU to sync, and CPU per update, with a server that selects by shard and with one
// that does not.
//
//	go run ./shards -pods 20000 -n 4 -data pods.pb.zst
//
// The embedded server runs in this process. Each copy is in a process of its own, which
// runs this program again.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/bench/podset"
)

var (
	pods    = flag.Int("pods", 20_000, "how many pods there are")
	shards  = flag.Int("n", 4, "how many shards there are")
	updates = flag.Int("updates", 10_000, "how many status updates there are")
	every   = flag.Duration("every", time.Millisecond, "the time between two updates: if they come faster than they are taken, a copy of everything has larger batches, and comparing says little")
	backlog = flag.Bool("backlog", false, "let each copy read the updates only when all are there, so that it is busy until it has taken them")
	rounds  = flag.Int("rounds", 3, "how often each copy is measured; the medians count")
	inJSON  = flag.Bool("json", false, "read JSON, as for custom resources, instead of protobuf")
	lists   = flag.Bool("lists", false, "read the first state as lists, as from a server that does not stream it")
	plain   = flag.Bool("plain", false, "accept no compressed answers, as rest.Config.DisableCompression does: servers compress lists, not streams")
	data    = flag.String("data", "../../shared/data/pods.pb.zst", "`file` with real pods")
	// The following are for the processes that this one starts.
	server = flag.String("server", "", "measure a copy of the `address`, and print it")
	shard  = flag.Int("shard", -1, "the shard of that copy; -1 for everything")
	alone  = flag.Bool("alone", false, "the server of that copy does not know shards")
)

func main() {
	flag.Parse()
	run := compare
	if *server != "" {
		run = measure
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "shards:", err)
		os.Exit(1)
	}
}

// compare measures all copies one after the other, each with a server of its own.
func compare() error {
	set, err := podset.Read(*data, podset.ReplicaSets, *pods)
	if err != nil {
		return err
	}
	cases := []struct {
		name string
		args []string
	}{
		{"everything", nil},
		{fmt.Sprintf("shard 1 of %d, the server selects", *shards), []string{"-shard", "1"}},
		{fmt.Sprintf("shard 1 of %d, the server sends all", *shards), []string{"-shard", "1", "-alone"}},
	}
	// The cases take turns, so that a busy minute of the machine is not that of one case.
	measured := make([][]figures, len(cases))
	for range *rounds {
		for i, c := range cases {
			f, err := one(set, c.args)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			measured[i] = append(measured[i], f)
		}
	}
	var all, selected figures
	for i, c := range cases {
		f := medians(measured[i])
		switch i {
		case 0:
			all = f
		case 1:
			selected = f
		}
		fmt.Printf("%s: %d pods\n", c.name, f.Objects)
		fmt.Printf("  heap            %8.1f MiB   %.3f of all\n", f.Heap/(1<<20), f.Heap/all.Heap)
		fmt.Printf("  CPU to sync     %8.0f ms    %.3f of all\n", f.Sync*1e3, f.Sync/all.Sync)
		fmt.Printf("  CPU per update  %8.1f µs    %.3f of all\n", f.Update*1e6/float64(*updates), f.Update/all.Update)
		if foreign := f.Dropped - f.DroppedUpdates; foreign > 0 {
			fmt.Printf("  an object of another shard costs %.1f µs in the first state, an update of one %.1f µs, HTTP included\n",
				(f.Sync-selected.Sync)*1e6/float64(foreign), (f.Update-selected.Update)*1e6/float64(f.DroppedUpdates))
		}
	}
	return nil
}

// medians are those of each figure.
func medians(all []figures) figures {
	of := func(read func(figures) float64) float64 {
		values := make([]float64, len(all))
		for i, f := range all {
			values[i] = read(f)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	f := all[0] // the numbers of objects are the same in all
	f.Heap = of(func(f figures) float64 { return f.Heap })
	f.Sync = of(func(f figures) float64 { return f.Sync })
	f.Update = of(func(f figures) float64 { return f.Update })
	return f
}

// one measures a copy in a process of its own.
func one(set *podset.Set, args []string) (f figures, err error) {
	api, err := apiserver.Start(apiserver.Options{
		AnyNamespace: true, HistorySize: 2 * *updates, HistoryBytes: 4 << 30, WriteTimeout: 10 * time.Minute,
	})
	if err != nil {
		return f, err
	}
	defer api.Close()
	for _, raw := range set.Pods {
		if err := put(api, raw); err != nil {
			return f, err
		}
	}
	next, err := set.Updates(*updates)
	if err != nil {
		return f, err
	}
	program, err := os.Executable()
	if err != nil {
		return f, err
	}
	child := exec.Command(program, append([]string{"-server", api.URL(), "-n", fmt.Sprint(*shards), fmt.Sprint("-json=", *inJSON), fmt.Sprint("-lists=", *lists), fmt.Sprint("-plain=", *plain), fmt.Sprint("-backlog=", *backlog)}, args...)...)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		return f, err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return f, err
	}
	if err := child.Start(); err != nil {
		return f, err
	}
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil { // it has synced
		return f, err
	}
	pace := time.NewTicker(*every)
	defer pace.Stop()
	for _, u := range next {
		if !*backlog {
			<-pace.C
		}
		if err := put(api, u.Pod); err != nil {
			return f, err
		}
	}
	if _, err := io.WriteString(in, "read\n"); err != nil {
		return f, err
	}
	time.Sleep(2*time.Second + time.Duration(*updates)*200*time.Microsecond)
	if _, err := io.WriteString(in, "done\n"); err != nil {
		return f, err
	}
	if err := json.NewDecoder(lines).Decode(&f); err != nil {
		return f, err
	}
	return f, child.Wait()
}

func put(api *apiserver.Server, raw []byte) error {
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(raw); err != nil {
		return err
	}
	return api.Import(pod)
}
