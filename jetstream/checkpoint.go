package jetstream

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tarnproject/tarn"
)

// The reserved keys of a bucket.
const (
	reserved      = "_tarn."
	checkpointKey = reserved + "checkpoint"
	gapPrefix     = reserved + "gap."
	badPrefix     = reserved + "bad."
)

const checkpointFormat = 1

// A Checkpoint is the value of the key _tarn.checkpoint: which state of the source the
// bucket has, and who feeds it. It ends every commit.
type Checkpoint struct {
	// Format is 1.
	Format int `json:"format"`
	// Serial counts the checkpoints of the bucket.
	Serial uint64 `json:"serial"`
	// Feeder says who wrote it; its lease lasts for Lease after the time of the message,
	// unless it was Released. Session distinguishes one run of a feeder from the next.
	Feeder   string `json:"feeder"`
	Session  string `json:"session"`
	Lease    string `json:"lease"`
	Released bool   `json:"released,omitempty"`
	// Resource, Of and Source say what the bucket is a copy of, as far as the feeder knows; see
	// [Bucket].
	Resource string `json:"resource,omitempty"`
	Of       string `json:"of,omitempty"`
	Source   string `json:"source,omitempty"`
	// Positions are those of the sections of the copy.
	Positions []CheckpointPosition `json:"positions"`
	// Incomplete says that a commit is larger than one atomic batch, and was not written to
	// its end: the bucket has some of the changes after Positions. A reader waits, a feeder
	// compares.
	Incomplete bool `json:"incomplete,omitempty"`
	// Commit names the commit that was last written, in whole or in part.
	Commit string `json:"commit,omitempty"`
	// Objects counts the messages of objects that were ever written, Gaps the gaps.
	Objects uint64 `json:"objects"`
	Gaps    uint64 `json:"gaps"`
	// Line changes with each commit that does not follow by its versions from the one before:
	// after a gap, a rewind, a comparison. A reader that follows the versions of the source
	// then lists again.
	Line string `json:"line,omitempty"`
	// LastContact is the time of the feeder's last contact with the source.
	LastContact time.Time `json:"lastContact"`
}

// A CheckpointPosition is a [tarn.Position].
type CheckpointPosition struct {
	Section  string `json:"section,omitempty"`
	Epoch    string `json:"epoch,omitempty"`
	Version  string `json:"version"`
	Complete bool   `json:"complete"`
}

func (c Checkpoint) encode() ([]byte, error) {
	c.Format = checkpointFormat
	return json.Marshal(c)
}

func decodeCheckpoint(data []byte) (c Checkpoint, err error) {
	if err := json.Unmarshal(data, &c); err != nil {
		return Checkpoint{}, fmt.Errorf("the checkpoint cannot be read: %w", err)
	}
	if c.Format != checkpointFormat {
		return Checkpoint{}, fmt.Errorf("the checkpoint has the format %d, and this program knows %d", c.Format, checkpointFormat)
	}
	if _, err := time.ParseDuration(c.Lease); err != nil {
		return Checkpoint{}, fmt.Errorf("the checkpoint cannot be read: lease: %w", err)
	}
	return c, nil
}

// positions are those of the state that the bucket has. One that has changes after it is
// not complete.
func (c Checkpoint) positions() []tarn.Position {
	all := make([]tarn.Position, 0, len(c.Positions))
	for _, p := range c.Positions {
		all = append(all, tarn.Position{Section: p.Section, Epoch: p.Epoch, Version: tarn.Version(p.Version), Complete: p.Complete && !c.Incomplete})
	}
	return all
}

func checkpointPositions(positions []tarn.Position) []CheckpointPosition {
	all := make([]CheckpointPosition, 0, len(positions))
	for _, p := range positions {
		all = append(all, CheckpointPosition{p.Section, p.Epoch, string(p.Version), p.Complete})
	}
	return all
}

// ends says when the lease of the checkpoint ends that was written at a time.
func (c Checkpoint) ends(written time.Time) time.Time {
	lease, err := time.ParseDuration(c.Lease)
	if c.Released || err != nil {
		return written
	}
	return written.Add(lease)
}

// keptGaps is how many gaps a bucket remembers. Later ones replace the oldest.
const keptGaps = 1000

// A Gap is the value of a key under _tarn.gap.: within a range of versions, states are
// missing.
type Gap struct {
	// Number counts the gaps of the bucket, from 1 on.
	Number  uint64    `json:"number"`
	Section string    `json:"section,omitempty"`
	From    string    `json:"from"`
	To      string    `json:"to"`
	Cause   string    `json:"cause"`
	Time    time.Time `json:"time"`
}

func gapKey(number uint64) string { return fmt.Sprintf("%s%d", gapPrefix, number%keptGaps) }

// badKey is the key of the message that says that an object could not be written. An object
// whose own key is too long for the bucket is named by a checksum, after "==", with which no
// escaped key begins.
func badKey(key tarn.Key) string {
	if name := escapeKey(key); len(name) <= longestKey {
		return badPrefix + name
	}
	return fmt.Sprintf("%s==%x", badPrefix, sha256.Sum256([]byte(key)))
}

// A BadObject is the value of a key under _tarn.bad.: this state of the object could not
// be written, and the bucket has the previous state, or none.
type BadObject struct {
	Key     string `json:"key"`
	Version string `json:"version"`
	Error   string `json:"error"`
}
