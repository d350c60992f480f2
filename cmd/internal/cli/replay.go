package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// replayOptions are the flags of replay.
type replayOptions struct {
	from
	since, until    string
	speed           float64
	api, kubeconfig string
	showSecrets     bool
	// begin and end are the parsed since and until.
	begin, end time.Time
}

func (a *app) replayCommand() *cobra.Command {
	var opts replayOptions
	cmd := &cobra.Command{
		Use:   "replay [RESOURCES…]",
		Short: "Serve the past through an API server, for a controller under test",
		Long: `Start an API server in memory, and replay the changes that a mirror kept in its
history: the server begins with the state as of --since, and then each change
follows at its original pace, or faster with --speed. At the end the server
keeps running until Ctrl-C.

Point a controller, kubectl or any other client at it with the printed
kubeconfig. Objects keep their uids and times; versions are new ones of this
server. Changes of different kinds are in the order in which the mirror received
them. Where states may be missing, it says so at that point. A client's write
lasts until the replay writes the same object.

Without resources it serves everything in the directory. If that has several
clusters, --context names the one to serve. Values of Secrets are hidden unless
--show-secrets is given.`,
		Example: `  # The last hour, ten times as fast
  tarn replay --from replica --since 1h --speed 10

  # An hour of yesterday, as fast as possible, at a known place
  tarn replay --from replica --since 25h --until 24h --speed 0 --kubeconfig-out past.kubeconfig`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.replay(cmd.Context(), args, &opts)
		},
		ValidArgsFunction: a.completeResources,
	}
	opts.from.bind(cmd)
	flags := cmd.Flags()
	flags.StringVar(&opts.since, "since", "", "where to begin: 1h (ago), 2026-11-16T02:00:00Z, or '2026-11-16 02:00' in local time")
	flags.StringVar(&opts.until, "until", "", "where to end, in the format of --since; now if empty")
	flags.Float64Var(&opts.speed, "speed", 1, "speed relative to the original; 0 for as fast as possible")
	flags.StringVar(&opts.api, "api-listen", "127.0.0.1:0", "address on this machine where the API server listens")
	flags.StringVar(&opts.kubeconfig, "kubeconfig-out", "", "file to write the kubeconfig to while the server runs; a temporary one if empty")
	flags.BoolVar(&opts.showSecrets, "show-secrets", false, "serve the values of Secrets")
	_ = cmd.RegisterFlagCompletionFunc("since", choices("10m", "1h", "24h"))
	_ = cmd.RegisterFlagCompletionFunc("until", choices("10m", "1h", "24h"))
	_ = cmd.RegisterFlagCompletionFunc("speed", choices("0", "1", "10", "60"))
	return cmd
}

func (o *replayOptions) check() (err error) {
	now := time.Now()
	switch {
	case o.dir == "":
		return usagef("the past is in a replica directory that keeps a history: name it with --from")
	case o.since == "":
		return usagef("say from when on: --since 1h, or --since '2026-11-16 02:00'")
	case !(o.speed >= 0) || math.IsInf(o.speed, 0):
		return usagef("--speed is 0 or more, such as 10, not %v", o.speed)
	}
	if o.begin, err = parseMoment("--since", o.since, now); err != nil {
		return err
	}
	if o.end = now; o.until != "" {
		if o.end, err = parseMoment("--until", o.until, now); err != nil {
			return err
		}
	}
	if !o.end.After(o.begin) {
		return usagef("--until %s is not after --since %s", o.until, o.since)
	}
	return onThisMachine("--api-listen", o.api)
}

// replay serves the past until ctx ends, which is its normal end.
func (a *app) replay(ctx context.Context, args []string, opts *replayOptions) (failed error) {
	if err := opts.check(); err != nil {
		return err
	}
	at, err := a.place(ctx, &opts.from)
	if err != nil {
		return err
	}
	defer at.close()
	if len(args) == 0 {
		args = []string{"*"}
	}
	wanted, err := resources(at.catalog, args)
	if err != nil {
		return at.notInDirectory(err)
	}
	if err := at.oneCluster(ctx); err != nil {
		return err
	}
	p := a.newPlayer(at, wanted, opts)
	if err := p.find(ctx); err != nil {
		return explainPast(err)
	}
	// The token keeps out other users of this machine. client-go sends the one of a
	// kubeconfig over TLS only.
	server, err := apiserver.Start(apiserver.Options{Address: opts.api, TLS: true, Tokens: []string{rand.Text()}, BookmarkInterval: replayBookmarks})
	if err != nil {
		return explainListen("--api-listen", err)
	}
	defer server.Close()
	p.stage = server
	if err := p.begin(ctx); err != nil {
		return explainPast(err)
	}
	kubeconfig, err := writeKubeconfig(server, opts.kubeconfig)
	if err != nil {
		return err
	}
	defer os.Remove(kubeconfig)
	a.introduceReplay(p, kubeconfig)
	if err := p.play(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("the past was shown up to %s only: %w", plural(p.changes, "change"), explainReplay(err))
	}
	text := fmt.Sprintf("This was the past: %s", plural(p.changes, "change"))
	if p.failures > 0 {
		text += fmt.Sprintf(", and %s that could not be served", thousands(p.failures))
	}
	fmt.Fprintf(a.out, "%s. The server stays as it is now; Ctrl-C ends it.\n", text)
	<-ctx.Done()
	return nil
}

// replayBookmarks is short, so that a client sees that it follows a quiet past.
const replayBookmarks = 5 * time.Second

// oneCluster checks that a directory of several clusters has the requested one.
func (at cluster) oneCluster(ctx context.Context) error {
	if !at.directory.Fleet() {
		return nil
	}
	all, err := at.directory.Clusters(ctx)
	switch {
	case err != nil:
		return err
	case at.only == "":
		return usagef("--from: the directory is of several clusters: say with --context which one to serve: %s", strings.Join(all, ", "))
	case !slices.Contains(all, at.only):
		return usagef("--context: the directory has no cluster %q; it has %s", at.only, strings.Join(all, ", "))
	}
	return nil
}

func (a *app) newPlayer(at cluster, wanted []mirror.Resource, opts *replayOptions) *player {
	return &player{
		directory: at.directory, resources: wanted, since: opts.begin, until: opts.end, speed: opts.speed,
		options: mirror.Options{ShowSecrets: opts.showSecrets, AppliedCopies: a.appliedCopies(), Cluster: at.only},
		onGap: func(r mirror.Resource, g changelog.Gap) {
			fmt.Fprintln(a.errOut, gapText(r.Name(), g, time.Now()))
		},
		onFailure: func(r mirror.Resource, e changelog.Typed[mirror.Object], err error) {
			a.logger.Warn("a state of the past cannot be served", "object", entryName(r, e), "error", err)
		},
	}
}

// introduceReplay says what is served, and where.
func (a *app) introduceReplay(p *player, kubeconfig string) {
	pace := fmt.Sprintf("%g times as fast as it was", p.speed)
	switch p.speed {
	case 0:
		pace = "as fast as possible"
	case 1:
		pace = "as fast as it was"
	}
	fmt.Fprintf(a.out, "The past of %s, from %s to %s, %s. %s lived then.\n\n",
		plural(len(p.resources), "resource"), p.since.Local().Format(momentShown), p.until.Local().Format(momentShown), pace, plural(p.objects, "object"))
	fmt.Fprintf(a.out, "  see it      export KUBECONFIG=%s\n", kubeconfig)
	fmt.Fprintf(a.out, "              kubectl get %s -A -w\n\nCtrl-C ends it.\n\n", p.resources[len(p.resources)-1].Name())
}

// explainReplay says what to do if the history was shortened in the meantime.
func explainReplay(err error) error {
	if errors.Is(err, changelog.ErrExpired) {
		return fmt.Errorf("%w; the mirror removes its oldest states while they are shown: begin later, or keep more with --history", err)
	}
	return err
}
