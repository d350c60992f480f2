package fieldpath

import (
	"slices"
	"strconv"
	"time"
)

// ValuesOfText returns all values with this text, in order: the text itself, and
// the bool, number and time that it spells.
func ValuesOfText(text string) []Value {
	values := []Value{StringValue(text)}
	add := func(v Value) {
		if v.String() == text {
			values = append(values, v)
		}
	}
	if b, err := strconv.ParseBool(text); err == nil {
		add(BoolValue(b))
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		add(IntValue(n))
	} else if f, err := strconv.ParseFloat(text, 64); err == nil {
		add(FloatValue(f))
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		values = append(values, TimeValue(t))
	}
	slices.SortFunc(values, Value.Compare)
	return values
}
