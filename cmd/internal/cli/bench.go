package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/measure"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// benchOptions are the flags of bench.
type benchOptions struct {
	scope
	rounds  int
	timeout time.Duration
	format  string
}

func (a *app) benchCommand() *cobra.Command {
	var opts benchOptions
	cmd := &cobra.Command{
		Use:   "bench RESOURCES…",
		Short: "Compare client-go's informer with Tarn on your cluster",
		Long: `Measure the cost of a live copy of resources of your cluster: with client-go's
informer and with Tarn, each in its own process, in turns.

Built-in kinds are held as Go types and read as protobuf, custom resources as
untyped objects and JSON, by both. The figures are medians of all rounds:

  HEAP      what the copy holds once the garbage is gone
  PEAK      by how much the process grew at most while copying (Linux)
  SYNC      from the start until the copy was complete
  CPU       processor time used until then

Below the table is how the objects were sent: by HTTP/2 or not, encrypted or
not, as a stream or as a list, compressed or not. A kube-apiserver compresses
lists, not streams. Decompression takes processor time; over a fast network,
disable-compression in the kubeconfig saves it.

Each round reads the resources from the server in full, twice. If the server
fails during a measurement, it is repeated, a few times. For a resource with few
objects the figures show the fixed costs, not those of the objects.`,
		Example: `  tarn bench pods -A
  tarn bench pods,secrets,configmaps -A --rounds 5
  tarn bench certificates.cert-manager.io -A -o json`,
		Args: a.someResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.bench(cmd, args, &opts)
		},
		ValidArgsFunction: a.completeResources,
	}
	opts.scope.bind(cmd)
	flags := cmd.Flags()
	flags.IntVar(&opts.rounds, "rounds", 3, "number of measurements of each")
	flags.DurationVar(&opts.timeout, "timeout", 10*time.Minute, "how long a single copy may take")
	flags.StringVarP(&opts.format, "output", "o", "", "how to print: json")
	_ = cmd.RegisterFlagCompletionFunc("output", choices("json"))
	return cmd
}

// verdict is the result for one resource.
type verdict struct {
	Resource string         `json:"resource"`
	ClientGo measure.Result `json:"clientGo"`
	Tarn     measure.Result `json:"tarn"`
}

func (a *app) bench(cmd *cobra.Command, args []string, opts *benchOptions) error {
	switch {
	case opts.rounds < 1:
		return usagef("--rounds is a number from 1 on, not %d", opts.rounds)
	case opts.format != "" && opts.format != "json":
		return usagef("-o is json, not %q", opts.format)
	}
	if err := opts.scope.check(); err != nil {
		return err
	}
	at, err := a.cluster(cmd.Context())
	if err != nil {
		return err
	}
	wanted, err := resources(at.catalog, args)
	if err != nil {
		return err
	}
	var verdicts []verdict
	for _, r := range wanted {
		v, err := a.compare(cmd, r, at.namespace, opts)
		if err != nil {
			return err
		}
		verdicts = append(verdicts, v)
	}
	if opts.format == "json" {
		encoder := json.NewEncoder(a.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(verdicts)
	}
	return printVerdicts(a.out, verdicts, opts.rounds)
}

// compare measures both alternately, so that changes of the machine or the server affect
// both.
func (a *app) compare(cmd *cobra.Command, r mirror.Resource, namespace string, opts *benchOptions) (verdict, error) {
	task := measure.Task{Resource: r.GVR, Kind: r.Kind, Labels: opts.labels, Fields: opts.fields}
	if r.Namespaced && !opts.allNamespaces {
		task.Namespace = namespace
	}
	results := map[string][]measure.Result{}
	for round := range opts.rounds {
		for _, holder := range []string{measure.ClientGo, measure.Tarn} {
			fmt.Fprintf(a.errOut, "round %d of %d: %s with %s\n", round+1, opts.rounds, r.Name(), holder)
			task.Holder = holder
			result, err := a.persist(cmd.Context(), func() (measure.Result, error) { return a.runChild(cmd, task, opts.timeout) })
			if err != nil {
				return verdict{}, fmt.Errorf("%s with %s: %w", r.Name(), holder, err)
			}
			results[holder] = append(results[holder], result)
		}
	}
	return verdict{r.Name(), measure.Median(results[measure.ClientGo]), measure.Median(results[measure.Tarn])}, nil
}

// benchChildCommand runs in its own process. It reads its task from standard input, and
// writes the result to standard output.
func (a *app) benchChildCommand() *cobra.Command {
	return &cobra.Command{
		Use:    benchChild,
		Hidden: true,
		Args:   a.noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var task measure.Task
			if err := json.NewDecoder(a.in).Decode(&task); err != nil {
				return usagef("%s is for %q to call: %v", benchChild, a.program+" bench", err)
			}
			cfg, _, err := a.config()
			if err != nil {
				return err
			}
			cfg.Timeout = 0 // a timeout is for requests that end by themselves
			result, err := measure.Run(cmd.Context(), cfg, task)
			switch {
			case err != nil && !denied(err) && cmd.Context().Err() == nil:
				return &exitError{code: exitPassing, err: err}
			case err != nil:
				return err
			}
			return json.NewEncoder(a.out).Encode(result)
		},
	}
}

const benchChild = "bench-child"

// runChild measures in a new process, which finds the cluster by the flags of this one.
func (a *app) runChild(cmd *cobra.Command, task measure.Task, timeout time.Duration) (measure.Result, error) {
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("it took longer than %v; allow more with --timeout", timeout))
	defer cancel()
	stdin, err := json.Marshal(task)
	if err != nil {
		return measure.Result{}, err
	}
	args, environment := inherited(cmd)
	stdout, err := a.execute(ctx, append([]string{benchChild}, args...), environment, strings.NewReader(string(stdin)))
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return measure.Result{}, err
	}
	var result measure.Result
	if err := json.Unmarshal(stdout, &result); err != nil {
		return measure.Result{}, fmt.Errorf("its result %q cannot be read: %w", stdout, err)
	}
	return result, nil
}
