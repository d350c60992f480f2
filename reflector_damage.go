package tarn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Damage is an object of the copy that differs from what the source sent, because a
// program wrote to it, or to memory that it shares with others.
type Damage struct {
	Key Key
	// Field is the path of the damaged field, if known.
	Field string
	// Since is when the damage was found.
	Since time.Time
	// Repaired says that the copy holds the right state of the object again.
	Repaired bool
}

// ErrStrayWrite says that a program wrote to an object that a copy holds.
var ErrStrayWrite = errors.New("a program wrote to this object, which is read-only; DeepCopy objects before writing to them")

// DamageHealth describes objects that a program wrote to by mistake.
type DamageHealth struct {
	// Found counts damaged objects, Repaired those that were repaired, Waiting those
	// that have not been read again yet.
	Found, Repaired int64
	Waiting         int
	// Recent holds the latest ones, at most a hundred.
	Recent []Damage
}

// maxDamageListed is how many damaged objects Health names.
const maxDamageListed = 100

// damageQueue holds the damaged objects of a reflector, and the recently repaired ones.
// Any goroutine adds to it; the loop reads the waiting objects again.
type damageQueue struct {
	mu     sync.Mutex
	health DamageHealth
	// waiting holds the objects to read again, order their keys, oldest first.
	waiting map[Key]damagedObject
	order   []Key
	// wake ends the loop's wait for events; nil while it does not wait.
	wake func()
	// reported is when damage of each field was last reported.
	reported map[string]time.Time
}

// damagedObject is an object that waits for a read.
type damagedObject struct {
	// version is that of the damaged state, tries the number of reads since.
	version Version
	tries   int
}

// reportDamageEvery limits reports about one field. A program that writes to objects
// does so all day.
const reportDamageEvery = time.Minute

// add records damage, and returns the part of it to report.
func (d *damageQueue) add(found []Damage, versionOf func(Key) (Version, bool), now time.Time) (report []Damage) {
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
				d.waiting = map[Key]damagedObject{}
			}
			d.waiting[f.Key] = damagedObject{version: version}
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

// due reports whether to report damage of a field.
func (d *damageQueue) due(field string, now time.Time) bool {
	if last, ok := d.reported[field]; ok && now.Sub(last) < reportDamageEvery && !now.Before(last) {
		return false
	}
	if d.reported == nil {
		d.reported = map[string]time.Time{}
	}
	d.reported[field] = now
	return true
}

// setWake sets the function by which new damage ends a wait of the loop; nil if the loop
// does not wait.
func (d *damageQueue) setWake(wake func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wake = wake
}

// next returns the object to read next, and how many wait.
func (d *damageQueue) next() (key Key, waiting int) {
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

// postpone moves the first object to the end of the order, counts a try, and returns the
// object.
func (d *damageQueue) postpone(key Key) damagedObject {
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

func (d *damageQueue) has(key Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.waiting[key]
	return ok
}

// keys returns the waiting objects.
func (d *damageQueue) keys() map[Key]bool {
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

func (d *damageQueue) any() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting) > 0
}

// repaired records that the copy holds the right state of an object.
func (d *damageQueue) repaired(key Key) {
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

func (d *damageQueue) summary() DamageHealth {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.health
	h.Waiting, h.Recent = len(d.waiting), slices.Clone(d.health.Recent)
	return h
}

// logDamage handles damage if there is no OnDamage.
func (o *Options[T]) logDamage(ctx context.Context, damage Damage) {
	o.Logger.ErrorContext(ctx, "a program wrote to an object of the copy, which is read-only; DeepCopy objects before writing to them; the object is read again",
		"replica", o.Name, "key", damage.Key, "field", damage.Field)
	if o.OnError != nil {
		o.OnError(ctx, fmt.Errorf("%s: %s, field %s: %w", o.Name, damage.Key, damage.Field, ErrStrayWrite))
	}
}
