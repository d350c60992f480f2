package shards

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/kube"
)

// A hash is in the range of its slot, and each slot is a range of kube's.
func TestSlots(t *testing.T) {
	for i := range slotCount {
		set := setOf(kube.ShardByUID, func(j int) bool { return j == i })
		r := set.Ranges()[0]
		want, err := kube.ShardOf(kube.ShardByUID, i, slotCount)
		if err != nil || !set.Equal(want) {
			t.Fatalf("slot %d has %v, not %v, %v", i, r, want.Ranges(), err)
		}
		for _, hash := range []uint64{r.First, r.First + 1, r.First/2 + r.Last/2, r.Last - 1, r.Last} {
			if slotOf(hash) != i {
				t.Errorf("%#x is in slot %d, not %d", hash, slotOf(hash), i)
			}
		}
	}
}

func TestTableAsText(t *testing.T) {
	var made table
	made[3], made[4], made[119] = slot{Owner: "a"}, slot{Owner: "a"}, slot{Owner: "b", Next: "a", Ready: true}
	raw, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	var read table
	if err := json.Unmarshal(raw, &read); err != nil || read != made {
		t.Errorf("%s: %v", raw, err)
	}
	for _, bad := range []string{``, `{}`, `[]`, `[{"slots":119}]`, `[{"slots":121}]`, `[{"slots":-1},{"slots":121}]`, `[{"slots":120},{"slots":1}]`} {
		if err := json.Unmarshal([]byte(bad), &read); err == nil {
			t.Errorf("%s is a table", bad)
		}
	}
}

// Whatever a table was, balancing gives every slot to a member, evenly, and moves no more
// than what is needed; and to balance once more changes nothing.
func TestBalance(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	for range 500 {
		var before table
		for i := range before {
			before[i].Owner = append(slices.Clone(names), "")[random.IntN(len(names)+1)]
			if random.IntN(3) == 0 {
				before[i].Next = names[random.IntN(len(names))]
			}
			if before[i].Next == before[i].Owner {
				before[i].Next = ""
			}
		}
		members := names[:1+random.IntN(len(names))]
		dead := func(id string) bool { return id == "g" && !slices.Contains(members, "g") }
		after := before.balance(members, dead)
		count := map[string]int{}
		for i, s := range after {
			count[s.successor()]++
			switch {
			case s.Owner != before[i].Owner && !(s.Owner == "" && dead(before[i].Owner)):
				t.Fatalf("slot %d was taken from %q", i, before[i].Owner)
			case s.Owner == s.Next:
				t.Fatalf("slot %d goes from %q to %q", i, s.Owner, s.Next)
			}
		}
		for _, m := range members {
			if n := count[m]; n < slotCount/len(members) || n > slotCount/len(members)+1 {
				t.Fatalf("%s of %d has %d slots", m, len(members), n)
			}
		}
		if again := after.balance(members, dead); again != after {
			t.Fatal("to balance again changes the table")
		}
	}
}

// From 4 to 5 members a fifth of the slots move, and no others.
func TestFewSlotsMove(t *testing.T) {
	alive := func(string) bool { return false }
	var four table
	four = four.balance([]string{"a", "b", "c", "d"}, alive)
	for i := range four {
		four[i] = slot{Owner: four[i].Next}
	}
	five := four.balance([]string{"a", "b", "c", "d", "e"}, alive)
	moved := 0
	for _, s := range five {
		if s.Next != "" {
			moved++
		}
		if s.Next != "" && s.Next != "e" {
			t.Errorf("a slot goes from %s to %s", s.Owner, s.Next)
		}
	}
	if moved != slotCount/5 {
		t.Errorf("%d slots move", moved)
	}
}

func TestOptions(t *testing.T) {
	good := Options{Namespace: "n", Group: "g", Identity: "i"}
	if m, err := New(&rest.Config{}, good); err != nil || m.opts.Margin != 5*time.Second {
		t.Error(err)
	}
	for want, change := range map[string]func(*Options){
		"required":       func(o *Options) { o.Group = "" },
		"name of a":      func(o *Options) { o.Identity = "A_b" },
		"whole seconds":  func(o *Options) { o.Duration = 1500 * time.Millisecond },
		"three quarters": func(o *Options) { o.Margin = time.Minute },
		"be a label":     func(o *Options) { o.Group = strings.Repeat("x", 70) },
		"sharded by":     func(o *Options) { o.Key = "object.metadata.name" },
	} {
		o := good
		change(&o)
		if _, err := New(&rest.Config{}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := New(nil, good); err == nil {
		t.Error("a member without a config")
	}
	if id := newIdentity("x"); id == newIdentity("x") || !strings.HasPrefix(id, "x-") {
		t.Error(fmt.Sprint("not unique: ", id))
	}
}
