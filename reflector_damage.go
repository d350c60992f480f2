package tarn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Damage is an object of the copy that is not what the source said, because a program
// wrote to it, or to memory that it shares with others.
type Damage struct {
	Key Key
	// Field is where, if that is known.
	Field string
	// Since is when it was found.
	Since time.Time
	// Repaired says that the copy holds the right state of the object again.
	Repaired bool
}

// ErrStrayWrite says that a program wrote to an object that a copy holds.
var ErrStrayWrite = errors.New("a program wrote to this object, which is read-only; DeepCopy objects before writing to them")

// DamageHealth is what a replica knows of objects that were written to by mistake.
type DamageHealth struct {
	// Found counts them, Repaired those that were put right, Waiting those that are
	// still to be read again.
	Found, Repaired int64
	Waiting         int
	// Recent are the last of them, at most a hundred.
	Recent []Damage
}

// maxDamageListed is how many damaged objects Health names.
const maxDamageListed = 100

// damages are the objects of a reflector that are damaged, and were lately. Anyone
// adds to it; the loop takes what is to be read again.
type damages struct {
	mu     sync.Mutex
	health DamageHealth
	// waiting are the objects to be read again, order the same in their order.
	waiting map[Key]damaged
	order   []Key
	// wake ends the wait of the loop for words of the source; nil while it does not
	// wait.
	wake func()
	// reported is when damage of each field was last reported.
	reported map[string]time.Time
}

// damaged is an object that waits.
type damaged struct {
	// version is that of the state that was found damaged, tries how often it was read
	// since.
	version Version
	tries   int
}

// reportDamageEvery is how often damage of one field is reported. A program that writes
// to objects does so all day.
const reportDamageEvery = time.Minute

// add notes what was found, and returns what is to be reported.
func (d *damages) add(found []Damage, versionOf func(Key) (Version, bool), now time.Time) (report []Damage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range found {
		f.Since = now
		if _, known := d.waiting[f.Key]; known {
			continue
		}
		d.health.Found++
		version, held := versionOf(f.Key)
		if f.Repaired = f.Repaired || !held; f.Repaired {
			d.health.Repaired++
		} else {
			if d.waiting == nil {
				d.waiting = map[Key]damaged{}
			}
			d.waiting[f.Key] = damaged{version: version}
			d.order = append(d.order, f.Key)
		}
		d.health.Recent = append(d.health.Recent, f)
		if d.due(f.Field, now) {
			report = append(report, f)
		}
	}
	if extra := len(d.health.Recent) - maxDamageListed; extra > 0 {
		d.health.Recent = slices.Clone(d.health.Recent[extra:])
	}
	if len(d.waiting) > 0 && d.wake != nil {
		d.wake()
	}
	return report
}

// due says whether damage of a field is to be reported.
func (d *damages) due(field string, now time.Time) bool {
	if last, ok := d.reported[field]; ok && now.Sub(last) < reportDamageEvery && !now.Before(last) {
		return false
	}
	if d.reported == nil {
		d.reported = map[string]time.Time{}
	}
	d.reported[field] = now
	return true
}

// waitsWith lets new damage end a wait of the loop; nil says that the loop does not
// wait.
func (d *damages) waitsWith(wake func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wake = wake
}

// next is the object to be read next, and how many wait.
func (d *damages) next() (key Key, waiting int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.order) > 0 {
		if _, ok := d.waiting[d.order[0]]; ok {
			return d.order[0], len(d.waiting)
		}
		d.order = d.order[1:]
	}
	return "", 0
}

// postpone moves the first object to the end of the order, and returns what is known of
// it.
func (d *damages) postpone(key Key) damaged {
	d.mu.Lock()
	defer d.mu.Unlock()
	x, ok := d.waiting[key]
	if !ok || d.order[0] != key {
		return x
	}
	x.tries++
	d.waiting[key] = x
	d.order = append(d.order[1:], key)
	return x
}

func (d *damages) has(key Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.waiting[key]
	return ok
}

// keys are the objects that wait.
func (d *damages) keys() map[Key]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) == 0 {
		return nil
	}
	keys := make(map[Key]bool, len(d.waiting))
	for key := range d.waiting {
		keys[key] = true
	}
	return keys
}

func (d *damages) any() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting) > 0
}

// repaired notes that the copy holds the right state of an object.
func (d *damages) repaired(key Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.waiting[key]; !ok {
		return
	}
	delete(d.waiting, key)
	d.health.Repaired++
	for i := range d.health.Recent {
		if d.health.Recent[i].Key == key {
			d.health.Recent[i].Repaired = true
		}
	}
}

func (d *damages) tell() DamageHealth {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.health
	h.Waiting, h.Recent = len(d.waiting), slices.Clone(d.health.Recent)
	return h
}

// logDamage is what becomes of damage that nobody handles.
func (o *Options[T]) logDamage(ctx context.Context, damage Damage) {
	o.Logger.ErrorContext(ctx, "a program wrote to an object of the copy, which is read-only; DeepCopy objects before writing to them; the object is read again",
		"replica", o.Name, "key", damage.Key, "field", damage.Field)
	if o.OnError != nil {
		o.OnError(ctx, fmt.Errorf("%s: %s, field %s: %w", o.Name, damage.Key, damage.Field, ErrStrayWrite))
	}
}
