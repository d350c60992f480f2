package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// options are what the command line says.
type options struct {
	scenarios []scenario
	trials    []trial
	races     []race
	sizes     []int // 0 is the data's own
	count     int
	updates   int
	data, out string
	// kubeconfig leads to a real server, which is filled for the races.
	kubeconfig string
	// docs is the root of the repository whose documents show the run, if any.
	docs     string
	note     string
	render   bool
	profiles string
	gzip     bool
	list     bool
}

const (
	// defaultSizes are those at which scaled races are held, "0" being the data's.
	// With 100,000 objects client-go's untyped informer alone takes ten minutes and
	// 10 GB, so that size has to be asked for.
	defaultSizes = "0,1000,30000"
	// defaultUpdates are enough that every contender's garbage collector runs
	// several times; with fewer, one more run would decide.
	defaultUpdates = 8_000
)

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	pattern := flags.String("run", "", "run only the scenarios, trials and races whose name matches this `regexp`; without it, those that the documents show")
	only := flags.String("only", "", "in trials and races, run only the contenders whose name matches this `regexp`")
	sizes := flags.String("n", defaultSizes, "hold races with these `numbers` of objects; 0 is the number that the data has")
	flags.IntVar(&o.count, "count", 3, "run everything `n` times and print the medians; large collections fewer times")
	flags.IntVar(&o.updates, "updates", defaultUpdates, "send this `number` of updates to each contender, a quarter in JSON")
	flags.StringVar(&o.data, "data", "../../shared/data/pods.pb.zst", "`file` with pods; without it pods are made up")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "hold the race \"production\" on the real kube-apiserver of this `file`, an empty cluster without controllers that is filled with pods")
	flags.StringVar(&o.out, "out", "", "write results and plots into this `folder`")
	flags.StringVar(&o.docs, "docs", "", "write results and plots into docs/bench of the repository in this `folder`, and the tables into its documents")
	flags.StringVar(&o.note, "note", "", "record this `sentence` about the run, which the documents show")
	flags.BoolVar(&o.render, "render", false, "with -docs: measure nothing, and write the tables and plots of the results that docs/bench has")
	flags.StringVar(&o.profiles, "profiles", "", "have contenders in races write profiles into this `folder`")
	flags.BoolVar(&o.gzip, "gzip", false, "have the server compress lists, as a kube-apiserver does for clients that accept it")
	flags.BoolVar(&o.list, "list", false, "say what each scenario, trial and race does, and run none")
	quick := flags.Bool("quick", false, "the same as -count 2 -n 0, where these are not given")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *quick {
		given := map[string]bool{}
		flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
		for name, value := range map[string]string{"count": "2", "n": "0"} {
			if !given[name] {
				flags.Set(name, value)
			}
		}
	}
	if o.render && o.docs == "" {
		return o, errors.New("-render writes documents; name the root of their repository with -docs")
	}
	if o.kubeconfig != "" {
		if o.docs != "" {
			return o, errors.New("-kubeconfig measures another server than the documents show; use -out")
		}
		*pattern = "^" + productionRace.name + "$"
	}
	o.count = max(1, o.count)
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 0 {
			return o, fmt.Errorf("-n: %q is not a number of objects", text)
		}
		o.sizes = append(o.sizes, n)
	}
	return o, o.choose(*pattern, *only)
}

// choose finds what the patterns name.
func (o *options) choose(pattern, only string) error {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	wanted, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	for _, s := range scenarios {
		if match.MatchString(s.name) && only == "" {
			o.scenarios = append(o.scenarios, s)
		}
	}
	for _, t := range trials {
		if t.extra && pattern == "" {
			continue
		}
		t.entries = chosen(t.entries, func(r runner) bool { return match.MatchString(t.name) && wanted.MatchString(r.name) })
		if len(t.entries) > 0 {
			o.trials = append(o.trials, t)
		}
	}
	for _, r := range races {
		if r.extra && pattern == "" {
			continue
		}
		r.entries = chosen(r.entries, func(e entry) bool { return match.MatchString(r.name) && wanted.MatchString(e.name) })
		if len(r.entries) > 0 {
			o.races = append(o.races, r)
		}
	}
	if len(o.scenarios)+len(o.trials)+len(o.races) == 0 {
		return fmt.Errorf("no scenario, trial or race matches -run %q with -only %q; -list shows the names", pattern, only)
	}
	return nil
}

// chosen returns the selected values, in a new slice.
func chosen[E any](all []E, want func(E) bool) (some []E) {
	for _, e := range all {
		if want(e) {
			some = append(some, e)
		}
	}
	return some
}

func (o options) describe(out io.Writer) {
	for _, s := range o.scenarios {
		fmt.Fprintf(out, "%s\n    %s\n", s.name, s.doc)
	}
	for _, t := range o.trials {
		fmt.Fprintln(out, strings.Join(t.describe(), "\n"))
	}
	for _, r := range o.races {
		fmt.Fprintf(out, "%s\n    %s\n", r.name, r.doc)
		for _, e := range r.entries {
			fmt.Fprintf(out, "        %-22s %s\n", e.name, e.made().Doc)
		}
	}
}
