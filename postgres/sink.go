package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tarnproject/tarn"
)

// Sink writes one resource of one cluster; see [tarn.Sink]. It is a [tarn.SinkLister], so
// that a sink whose position cannot be used gets only the differences, and a
// [tarn.Restorer]: a replica without any other copy loads its objects from the table, and
// its watch resumes at the position of the last commit.
//
// Each batch is one transaction, in four steps: copy the changes into a temporary table; lock
// the row of the position, which must be this process's; merge the changes into the tables;
// move the position.
//
// Why the lock is second: a COPY waits for the feeder, and only the first step does so for
// long. A process that is paused in it holds nothing that another feeder needs.
//
// Why always through a temporary table: the first state and a single change then take the
// same path, which is tested once. A single change takes about a millisecond longer.
type Sink[T any] struct {
	db     *DB
	codec  Codec[T]
	wanted table
	// selection says which objects there are, and what of them.
	selection string
	// source says which cluster the rows are of; nil if nobody asks.
	source *confirmation

	using bool
	table table
	// batch tells the last batch that was tried from those before it. The row of the position
	// has the batch that was last written: expected is the one that this sink knows of, and
	// unconfirmed are later ones whose commit was not answered. A row with any other one went
	// back, as after a restored backup, or was emptied by somebody.
	batch       string
	expected    string
	unconfirmed []string
	// lost says that the table may not have what this sink has written since Open.
	lost bool
	// held are the positions that were found when lost was ended, until a commit: what was
	// written after them and is gone is in its gaps. It is nil if nothing was lost.
	held []tarn.Position
	// pruned is when tombstones were last removed, and retained when the horizon of the
	// history was where it should be.
	pruned, retained time.Time
}

// NewSink returns the sink of a table. Selection describes which objects and fields the
// copy has: after it changes, everything is compared.
func NewSink[T any](db *DB, name, selection string, codec Codec[T]) *Sink[T] {
	return &Sink[T]{db: db, codec: codec, wanted: resourceTable(name, codec.Columns()), selection: selection}
}

// Policy asks for the last state of each object, or, with a history, for every state.
func (s *Sink[T]) Policy() tarn.SinkPolicy[T] {
	return tarn.SinkPolicy[T]{
		Name: "postgres", Delay: s.db.opts.Delay, BatchSize: s.db.opts.BatchSize, EveryState: s.db.opts.History,
		MaxBytes: s.db.opts.MaxBytes, SizeOf: func(tarn.Change[T]) int { return waitingSize },
	}
}

// waitingSize is about what a state that waits holds in memory.
const waitingSize = 8 << 10

// Open creates the tables, claims the resource and reads its position. It fails with an
// [OwnedError] while another process feeds the resource.
func (s *Sink[T]) Open(ctx context.Context, _ func() error) (tarn.Kept, error) {
	if !s.using && !s.db.use(s.wanted) {
		return tarn.Kept{}, fmt.Errorf("postgres: this process has a sink for %s of cluster %s already; a resource can be written once", s.wanted.name, s.db.opts.Cluster)
	}
	s.using = true
	kept, err := s.claim(ctx)
	if err != nil {
		return tarn.Kept{}, err
	}
	s.lost, s.held = false, nil
	if s.source != nil {
		l := label{s.db, s.table.name}
		kept.Confirm = func(ctx context.Context) error { return s.source.confirm(ctx, l) }
	}
	return kept, nil
}

// claim makes the tables, makes this process their feeder, and reads the position.
func (s *Sink[T]) claim(ctx context.Context) (tarn.Kept, error) {
	if err := s.db.migrate(ctx); err != nil {
		return tarn.Kept{}, fmt.Errorf("postgres: %w", err)
	}
	made, err := s.db.prepare(ctx, s.wanted)
	if err != nil {
		return tarn.Kept{}, err
	}
	s.table = made
	if err := s.db.Claim(ctx, s.table.name); err != nil {
		return tarn.Kept{}, err
	}
	if s.source != nil {
		if err := s.source.recordAgain(ctx, label{s.db, s.table.name}); err != nil {
			return tarn.Kept{}, fmt.Errorf("postgres: the cluster of %s cannot be recorded: %w", s.table.name, err)
		}
	}
	kept, err := s.begin(ctx)
	if err != nil {
		return tarn.Kept{}, fmt.Errorf("postgres: the position of %s cannot be read: %w", s.table.name, err)
	}
	return kept, nil
}

// begin reads the position, and prepares the history.
func (s *Sink[T]) begin(ctx context.Context) (kept tarn.Kept, err error) {
	err = s.db.transaction(ctx, func(tx pgx.Tx) error {
		// What was selected otherwise is compared as a whole.
		if _, err := tx.Exec(ctx, `UPDATE tarn_feeds SET selection = $4, positions = CASE WHEN selection = $4 THEN positions END
			WHERE cluster = $1 AND resource = $2 AND owner = $3`, s.db.opts.Cluster, s.table.name, s.db.token, s.filled()); err != nil {
			return err
		}
		var positions []byte
		var heard *time.Time
		var history, quarantined bool
		if err := tx.QueryRow(ctx, `SELECT positions, heard, history, batch,
				EXISTS (SELECT FROM tarn_quarantine q WHERE q.cluster = f.cluster AND q.resource = f.resource)
			FROM tarn_feeds f WHERE cluster = $1 AND resource = $2`, s.db.opts.Cluster, s.table.name).Scan(&positions, &heard, &history, &s.expected, &quarantined); err != nil {
			return err
		}
		s.unconfirmed = nil
		kept.Positions = decodePositions(positions)
		if heard != nil {
			kept.LastContact = *heard
		}
		if history != s.db.opts.History {
			if err := s.switchHistory(ctx, tx, kept.Positions); err != nil {
				return err
			}
		}
		for i := range kept.Positions {
			// The copy that is loaded lacks what is quarantined.
			kept.Positions[i].Complete = kept.Positions[i].Complete && !quarantined
		}
		return nil
	})
	return kept, err
}

// filled is what the rows have: the selection, and the columns that this sink fills. Another
// cluster's feeder may have added a column long before this one fills it too.
func (s *Sink[T]) filled() string {
	sum := sha256.Sum256(fmt.Append(nil, s.wanted.columns))
	return fmt.Sprintf("%s (columns %x)", s.selection, sum[:8])
}

// switchHistory begins or ends the history. One that begins has first what is in the table, the
// deletes that are missing in one that ended before, and a gap for everything before.
func (s *Sink[T]) switchHistory(ctx context.Context, tx pgx.Tx, at []tarn.Position) error {
	if s.db.opts.History {
		history := s.table.history()
		shared := names(append(append([]column(nil), s.table.own()...), content...), "")
		if _, err := tx.Exec(ctx, fmt.Sprintf(`INSERT INTO %s (cluster, key, operation, version, heard, %s)
			SELECT cluster, key, 'kept', resource_version, clock_timestamp(), %s FROM %s WHERE cluster = $1`, history.quoted(), shared, shared, s.table.quoted()), s.db.opts.Cluster); err != nil {
			return err
		}
		// Another history may have ended before: what was deleted since is still alive there.
		if _, err := tx.Exec(ctx, fmt.Sprintf(`INSERT INTO %s (cluster, key, operation, version, epoch, inferred, rewound, heard, %s)
			SELECT cluster, key, 'deleted', version, epoch, true, false, clock_timestamp(), %s
			FROM (SELECT DISTINCT ON (key) * FROM %s WHERE cluster = $1 ORDER BY key, seq DESC) last
			WHERE operation <> 'deleted' AND NOT EXISTS (SELECT FROM %s t WHERE t.cluster = $1 AND t.key = last.key)
				AND NOT EXISTS (SELECT FROM tarn_quarantine q WHERE q.cluster = $1 AND q.resource = $2 AND q.key = last.key)`,
			history.quoted(), shared, shared, history.quoted(), s.table.quoted()), s.db.opts.Cluster, s.table.name); err != nil {
			return err
		}
		for _, p := range at {
			if err := s.noteGaps(ctx, tx, []tarn.Gap{{Section: p.Section, To: p.Version, Cause: gapNoHistory}}, at); err != nil {
				return err
			}
		}
	}
	_, err := tx.Exec(ctx, `UPDATE tarn_feeds SET history = $3, history_since = CASE WHEN $3 THEN clock_timestamp() END
		WHERE cluster = $1 AND resource = $2`, s.db.opts.Cluster, s.table.name, s.db.opts.History)
	return err
}

// gapNoHistory is the cause of a gap before which no history was kept.
const gapNoHistory tarn.GapCause = "no history"

// Held lists the objects in the table.
func (s *Sink[T]) Held(ctx context.Context) iter.Seq2[tarn.Meta, error] {
	return func(yield func(tarn.Meta, error) bool) {
		stopped := false
		err := s.read(ctx, "key, coalesce(uid, ''), coalesce(resource_version, '')", func(row pgx.Rows) (more bool, err error) {
			var key, version string
			var m tarn.Meta
			if err := row.Scan(&key, &m.UID, &version); err != nil {
				return false, err
			}
			m.Key, m.Version = tarn.Key(key), tarn.Version(version)
			stopped = !yield(m, nil)
			return !stopped, nil
		})
		if err != nil && !stopped {
			yield(tarn.Meta{}, err)
		}
	}
}

// Load reads all objects.
func (s *Sink[T]) Load(ctx context.Context) (all []tarn.Change[T], err error) {
	err = s.read(ctx, "key, object", func(row pgx.Rows) (more bool, err error) {
		var key string
		var raw []byte
		if err := row.Scan(&key, &raw); err != nil {
			return false, err
		}
		object, err := s.codec.Decode(raw)
		if err != nil {
			return false, fmt.Errorf("%s cannot be decoded: %w; everything is compared with the cluster, and the row is written again", key, err)
		}
		all = append(all, tarn.Change[T]{Type: tarn.Add, Key: tarn.Key(key), Object: object})
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: %s cannot be read: %w", s.table.name, err)
	}
	return all, nil
}

// read gives the rows of the cluster to a function until that has enough. It is a transaction,
// because a limit for statements counts the time in which rows are decoded too.
func (s *Sink[T]) read(ctx context.Context, columns string, take func(row pgx.Rows) (more bool, err error)) error {
	return s.db.transaction(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT `+columns+` FROM `+s.table.quoted()+` WHERE cluster = $1`, s.db.opts.Cluster)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if more, err := take(rows); err != nil || !more {
				return err
			}
		}
		return rows.Err()
	})
}

// Close releases the resource for another process.
func (s *Sink[T]) Close() {
	if !s.using {
		return
	}
	if !s.lost && s.table.name != "" {
		s.db.release(s.table.name)
	}
	s.db.unuse(s.wanted)
}

// position is a [tarn.Position] in the row of a feed.
type position struct {
	Section  string `json:"section"`
	Epoch    string `json:"epoch"`
	Version  string `json:"version"`
	Complete bool   `json:"complete"`
}

func encodePositions(all []tarn.Position) (string, error) {
	rows := []position{}
	for _, p := range all {
		rows = append(rows, position{p.Section, p.Epoch, string(p.Version), p.Complete})
	}
	raw, err := json.Marshal(rows)
	return string(raw), err
}

// decodePositions returns none if they cannot be read, because somebody has edited them:
// everything is compared then, and the next commit replaces them.
func decodePositions(raw []byte) []tarn.Position {
	var rows []position
	if json.Unmarshal(raw, &rows) != nil {
		return nil
	}
	var all []tarn.Position
	for _, p := range rows {
		all = append(all, tarn.Position{Section: p.Section, Epoch: p.Epoch, Version: tarn.Version(p.Version), Complete: p.Complete})
	}
	return all
}
