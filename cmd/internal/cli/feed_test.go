package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/internal/pgtest"
)

// fed is a database that commands feed.
type fed struct {
	t       *testing.T
	address string
	conn    *pgx.Conn
}

// postgresServer is one server for all tests, because making one takes seconds. TestMain
// ends it.
var postgresServer struct {
	once      sync.Once
	server    *pgtest.Server
	err       error
	databases atomic.Int64
}

// newDatabase makes an empty database, and returns its address.
func newDatabase() (string, error) {
	p := &postgresServer
	p.once.Do(func() { p.server, p.err = pgtest.New() })
	if p.err != nil {
		return "", p.err
	}
	return p.server.Create(fmt.Sprint("test", p.databases.Add(1)))
}

func newFed(t *testing.T) *fed {
	t.Helper()
	address, err := newDatabase()
	if errors.Is(err, pgtest.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := &fed{t: t, address: address}
	if f.conn, err = pgx.Connect(t.Context(), f.address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// rows are those of a statement, with spaces between their values; an error is a row too.
func (f *fed) rows(statement string) string {
	rows, err := f.conn.Query(f.t.Context(), statement)
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return err.Error()
		}
		lines = append(lines, strings.Trim(fmt.Sprint(values), "[]"))
	}
	if rows.Err() != nil {
		return rows.Err().Error()
	}
	return strings.Join(lines, "\n")
}

// await waits until a statement has these rows. A database has no virtual time.
func (f *fed) await(statement, want string) {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got := f.rows(statement)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s\nhas %q, want %q", statement, got, want)
		}
	}
}

// feeding is a command that runs.
type feeding struct {
	t           *testing.T
	out, errOut lockedBuffer
	interrupt   context.CancelFunc
	ended       chan int
}

func (r *rig) feed(args ...string) *feeding {
	ctx, interrupt := context.WithCancel(r.t.Context())
	f := &feeding{t: r.t, interrupt: interrupt, ended: make(chan int, 1)}
	go func() { f.ended <- r.app(&f.out, &f.errOut).main(ctx, append([]string{"feed"}, args...)) }()
	return f
}

// says waits until the command has printed a text.
func (f *feeding) says(text string) {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(f.out.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("it does not say %q but\n%s%s", text, f.out.String(), f.errOut.String())
		}
	}
}

// stop ends the command by Ctrl-C.
func (f *feeding) stop() {
	f.t.Helper()
	f.interrupt()
	if code := <-f.ended; code != 0 || f.errOut.String() != "" {
		f.t.Errorf("it ended with %d and %s", code, f.errOut.String())
	}
}

func TestFeedPostgres(t *testing.T) {
	f := newFed(t)
	r := newRig(t, pod("web-1", corev1.PodPending), pod("web-2", corev1.PodPending), deployment("web"), secret("s", "topsecret"))
	args := []string{"pods", "deployments.apps", "-A", "--to", f.address, "--history=7d", "--cluster-name", "prod-1", "--interval", "100ms"}

	first := r.feed(args...)
	f.await("SELECT cluster, key, phase, labels ->> 'app' FROM pods ORDER BY key", "prod-1 default/web-1 Pending web\nprod-1 default/web-2 Pending web")
	f.await("SELECT key FROM deployments_apps", "default/web")
	first.says("; postgres at version ")
	r.put(pod("web-1", corev1.PodRunning))
	r.delete(pod("web-2", ""))
	f.await("SELECT key, phase FROM pods", "default/web-1 Running")
	f.await("SELECT key, inferred FROM tarn_tombstones", "default/web-2 false")

	second := r.feed(args...)
	second.says("of cluster prod-1 is fed by ")
	if strings.Contains(second.out.String(), "Feeding") {
		t.Errorf("the second does not wait:\n%s", second.out.String())
	}
	first.stop()
	second.says("Feeding")
	second.stop()

	// What happens while nobody feeds is not lost: the watch resumes.
	r.put(pod("web-1", corev1.PodFailed))
	r.put(pod("web-1", corev1.PodSucceeded))
	third := r.feed(args...)
	f.await("SELECT key, phase FROM pods", "default/web-1 Succeeded")
	third.stop()
	f.await("SELECT key, operation, phase FROM pods_history ORDER BY seq", strings.Join([]string{
		"default/web-1 added Pending", "default/web-2 added Pending", "default/web-1 modified Running", "default/web-2 deleted Pending",
		"default/web-1 modified Failed", "default/web-1 modified Succeeded",
	}, "\n"))
	f.await("SELECT count(*) FROM tarn_gaps", "0")
}

// A server that is unreachable is waited for. One that refuses is not, and says why.
func TestFeedWithoutDatabase(t *testing.T) {
	r := newRig(t, pod("web-1", corev1.PodPending))
	waiting := r.feed("pods", "--to", "postgres://tarn:topsecret@/fleet?host="+t.TempDir())
	waiting.says("does not answer")
	waiting.stop()
	if strings.Contains(waiting.out.String(), "topsecret") {
		t.Errorf("it shows the password:\n%s", waiting.out.String())
	}
	newFed(t)
	got := r.run("feed", "pods", "--to", postgresServer.server.URL("nothing"))
	if err := got.check(exitFailed, `database "nothing" does not exist`, "check user"); err != nil {
		t.Error(err)
	}
}

// A standby is waited for, because it may become the primary. A database that cannot have
// every text is not.
func TestFeedDatabaseThatTakesNothing(t *testing.T) {
	f := newFed(t)
	r := newRig(t, pod("web-1", corev1.PodPending))
	name := f.rows("SELECT current_database()")
	f.rows("ALTER DATABASE " + name + " SET default_transaction_read_only = on")
	waiting := r.feed("pods", "--to", f.address)
	waiting.says("cannot be fed yet: cannot execute CREATE TABLE in a read-only transaction (25006)")
	f.rows("ALTER DATABASE " + name + " RESET default_transaction_read_only")
	f.await("SELECT key FROM pods", "default/web-1")
	waiting.stop()

	f.rows("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
	got := r.run("feed", "pods", "--to", postgresServer.server.URL("latin"))
	if err := got.check(exitFailed, "LATIN1", "UTF8"); err != nil {
		t.Error(err)
	}
}

func TestFeedSecretsOnlyIfNamed(t *testing.T) {
	f := newFed(t)
	r := newRig(t, pod("web-1", corev1.PodPending), secret("s", "topsecret"))
	all := r.feed("*", "-A", "--to", f.address)
	f.await("SELECT key FROM pods", "default/web-1")
	f.await("SELECT bool_and(positions IS NOT NULL) FROM tarn_feeds", "true") // nothing is left for the last second
	all.stop()
	f.await("SELECT to_regclass('secrets') IS NULL", "true")
	named := r.feed("secrets", "-A", "--to", f.address)
	f.await("SELECT object -> 'data' ->> 'password', object::text LIKE '%last-applied%' FROM secrets", "dG9wc2VjcmV0 false")
	named.stop()
}

func TestFeedMistakes(t *testing.T) {
	r := newRig(t)
	for args, words := range map[string][]string{
		"feed pods":                                    {"--to", "postgres://"},
		"feed":                                         {"say which resources"},
		"feed pods --to mysql://u:secret@h/d":          {"mysql://…@h/d: there is no such engine", "postgres://"},
		"feed pods --to password=secret":               {"--to …: there is no such engine"},
		"feed pods --to nats:u:secret@h":               {"this is not the address of a NATS server"},
		"feed pods --to mysql://h/d?password=secret":   {"no such engine"},
		"feed pods --to postgres://u:secret@h:port/d":  {"--to", "postgres://user@host/database"},
		"feed pods --to postgres://h/d --interval -1s": {"--interval"},
		"feed pods --to postgres://h/d --metrics x":    {"--metrics"},
		"feed pods --to postgres://h/d --history=soon": {"--history=soon", "24h"},
		"feed pods --to postgres://h/d --history 24h":  {"--history=24h"},
		"feed dogs --to postgres://h/d":                {"dogs"},
	} {
		got := r.run(strings.Fields(args)...)
		code := exitUsage
		if strings.Contains(args, "dogs") {
			code = exitFailed
		}
		if err := got.check(code, words...); err != nil || strings.Contains(got.err, "secret") {
			t.Errorf("%s: %v (%s)", args, err, got.err)
		}
	}
}

// Nothing of a password is shown, whatever characters it has.
func TestRedacted(t *testing.T) {
	for address, want := range map[string]string{
		"postgre://tarn:p@ss@db.example/fleet": "postgre://…@db.example/fleet",
		"nats://db.example:4222":               "nats://db.example:4222",
		"nonsense":                             "nonsense",
		"nats:me:p@ss@db.example":              "…@db.example",
		"host=h Password = secret user=me":     "host=h …",
		"mysql://db.example/?password=secret":  "mysql://db.example/?…",
	} {
		if got := redacted(address); got != want {
			t.Errorf("%s is shown as %s", address, got)
		}
	}
}
