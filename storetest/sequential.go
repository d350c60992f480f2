package storetest

import "github.com/tarnproject/tarn"

// sequential are the checks without reads during writes.
var sequential = []check{
	{"a new store is empty and has no version", func(r *rig) {
		r.expect(state{}, "")
		r.expectAbsent("a", "")
	}},
	{"replace fills an empty store", func(r *rig) {
		r.replace(state{"ns/a": 1, "ns/b": 2, "c": 3}, "3")
		r.expect(state{"ns/a": 1, "ns/b": 2, "c": 3}, "3")
		r.expectAbsent("a", "ns/c")
	}},
	{"replace is exact: keeps, changes, adds and takes away", func(r *rig) {
		r.replace(state{"kept": 1, "changed": 2, "gone": 3}, "3")
		r.replace(state{"kept": 1, "changed": 4, "new": 5}, "5")
		r.expect(state{"kept": 1, "changed": 4, "new": 5}, "5")
		r.expectAbsent("gone")
	}},
	{"replace with nothing empties the store", func(r *rig) {
		r.replace(state{"a": 1, "b": 2}, "2")
		r.replace(state{}, "3")
		r.expect(state{}, "3")
		r.expectAbsent("a", "b")
		r.replace(state{"a": 4}, "4")
		r.expect(state{"a": 4}, "4")
	}},
	{"replace may go back to an older version", func(r *rig) {
		r.replace(state{"a": 9, "b": 8}, "9")
		r.replace(state{"a": 2}, "2")
		r.expect(state{"a": 2}, "2")
	}},
	{"apply adds, updates and deletes", func(r *rig) {
		r.apply("1", addition("a", 1))
		r.expect(state{"a": 1}, "1")
		r.apply("2", update("a", 1, 2))
		r.expect(state{"a": 2}, "2")
		r.apply("3", deletion("a", 2))
		r.expect(state{}, "3")
		r.expectAbsent("a")
	}},
	{"apply leaves alone what it does not name", func(r *rig) {
		r.replace(state{"a": 1, "b": 2, "c": 3}, "3")
		r.apply("6", deletion("a", 1), update("b", 2, 5), addition("d", 6))
		r.expect(state{"b": 5, "c": 3, "d": 6}, "6")
		r.expectAbsent("a")
	}},
	{"apply takes the changes of one key in their order", func(r *rig) {
		r.replace(state{"a": 1, "b": 1, "c": 1}, "1")
		r.apply("9",
			deletion("a", 1), addition("a", 2), update("a", 2, 3),
			update("b", 1, 4), deletion("b", 4),
			addition("d", 5), deletion("d", 5),
			update("c", 1, 6), deletion("c", 6), addition("c", 7))
		r.expect(state{"a": 3, "c": 7}, "9")
		r.expectAbsent("b", "d")
	}},
	{"apply without changes moves only the version", func(r *rig) {
		r.replace(state{"a": 1}, "1")
		r.apply("7")
		r.expect(state{"a": 1}, "7")
		if err := r.store.Apply([]tarn.Change[Object]{}, tarn.At("8")); err != nil {
			r.errorf("Apply of an empty slice failed: %v", err)
		}
		r.expect(state{"a": 1}, "8")
	}},
	{"deleting an absent key changes nothing but the version", func(r *rig) {
		r.replace(state{"a": 1}, "1")
		r.apply("3", deletion("b", 2), update("a", 1, 3))
		r.expect(state{"a": 3}, "3")
		r.expectAbsent("b")
	}},
	{"versions are kept as they are", func(r *rig) {
		for _, v := range []tarn.Version{"1", "007", "opaque-β", "123456789012345678901234567890", "", "5"} {
			r.replace(state{"a": 1}, v)
			r.expect(state{"a": 1}, v)
			r.apply("between")
			r.apply(v, update("a", 1, 2))
			r.expect(state{"a": 2}, v)
		}
	}},
	{"keys are kept apart, whatever is in them", func(r *rig) {
		keys := []tarn.Key{"a", "A", "a/b", "a/b/c", "a ", "ä", "a%", "a_", "a'b", `a"b`}
		all := state{}
		for i, key := range keys {
			all[key] = i + 1
		}
		r.replace(all, "1")
		r.expect(all, "1")
		r.apply("2", deletion("a", 1))
		delete(all, "a")
		r.expect(all, "2")
		r.expectAbsent("a")
	}},
	{"the slice of a replace is not kept", func(r *rig) {
		items := state{"a": 1, "b": 2}.items()
		if err := r.store.Replace(items, tarn.At("2")); err != nil {
			r.errorf("Replace failed: %v", err)
		}
		for i := range items {
			items[i] = tarn.Item[Object]{Meta: tarn.Meta{Key: "overwritten"}, Object: object("overwritten", 99)}
		}
		r.expect(state{"a": 1, "b": 2}, "2")
		r.apply("3", update("a", 1, 3))
		r.expect(state{"a": 3, "b": 2}, "3")
		r.expectAbsent("overwritten")
	}},
	{"the slice of an apply is not kept", func(r *rig) {
		changes := []tarn.Change[Object]{addition("a", 1), addition("b", 2)}
		if err := r.store.Apply(changes, tarn.At("2")); err != nil {
			r.errorf("Apply failed: %v", err)
		}
		for i := range changes {
			changes[i] = addition("overwritten", 99)
		}
		r.expect(state{"a": 1, "b": 2}, "2")
		r.apply("3", deletion("b", 2))
		r.expect(state{"a": 1}, "3")
		r.expectAbsent("overwritten")
	}},
	{"a batch may be large", func(r *rig) {
		const many = 5000
		r.replace(numbered(many, 1), "1")
		r.expect(numbered(many, 1), "1")
		r.apply("2", numbered(many, 1).to(numbered(many/2, 2))...)
		r.expect(numbered(many/2, 2), "2")
	}},
	{"a walk can be ended early and begun again", func(r *rig) {
		r.replace(state{"a": 1, "b": 1, "c": 1}, "1")
		all := r.store.All()
		for range all {
			break
		}
		n := 0
		for range all {
			n++
		}
		if n != 3 {
			r.errorf("after a walk that was ended early the same All gave %d of 3 objects", n)
		}
		r.apply("2", update("a", 1, 2))
		r.expect(state{"a": 2, "b": 1, "c": 1}, "2")
	}},
}
