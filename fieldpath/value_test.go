package fieldpath

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// inOrder is the order of values, each before the next.
var inOrder = []Value{
	{},
	BoolValue(false), BoolValue(true),
	FloatValue(math.Inf(-1)), FloatValue(-1e300), IntValue(math.MinInt64), IntValue(math.MinInt64 + 1), IntValue(-3), FloatValue(-2.5), IntValue(-2),
	FloatValue(-0.5), IntValue(0), FloatValue(1e-9), IntValue(1), FloatValue(1.5), IntValue(2),
	IntValue(1 << 53), IntValue(1<<53 + 1), IntValue(math.MaxInt64 - 1), IntValue(math.MaxInt64), FloatValue(1e19), FloatValue(math.Inf(1)),
	TimeValue(time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)), TimeValue(time.Unix(0, 1)), TimeValue(time.Unix(0, 2)), TimeValue(time.Unix(9, 0)),
	StringValue(""), StringValue("\x00"), StringValue("\x00\x00"), StringValue("\x00a"), StringValue("\x00\xff"), StringValue("10"), StringValue("9"), StringValue("a"), StringValue("a\x00"), StringValue("ab"), StringValue("\xff"),
	aList, anObject,
}

func TestOrder(t *testing.T) {
	for i, v := range inOrder {
		for j, w := range inOrder {
			want := min(max(i-j, -1), 1)
			if got := v.Compare(w); got != want {
				t.Errorf("%v %q against %v %q: %d, want %d", v.kind, v, w.kind, w, got, want)
			}
			code := slices.Compare(v.AppendOrdered(nil), w.AppendOrdered(nil))
			if code != want {
				t.Errorf("the codes of %v %q and %v %q compare as %d, want %d", v.kind, v, w.kind, w, code, want)
			}
		}
		back, rest, err := ReadOrdered(string(v.AppendOrdered(nil)) + "rest")
		if err != nil || rest != "rest" || back != v {
			t.Errorf("%v %q is read back as %v %q with %q, %v", v.kind, v, back.kind, back, rest, err)
		}
	}
}

func TestValueText(t *testing.T) {
	for _, test := range []struct {
		of   any
		want string
		kind Kind
	}{
		{nil, "", Missing}, {math.NaN(), "", Missing}, {time.Time{}, "", Missing},
		{true, "true", Bool}, {int32(-5), "-5", Int}, {uint64(math.MaxUint64), "1.8446744073709552e+19", Float},
		{2.0, "2", Int}, {2.5, "2.5", Float}, {float32(0.5), "0.5", Float}, {uint8(7), "7", Int},
		{time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("x", 3600)), "2026-01-02T02:04:05.000006Z", Time},
		{"text", "text", String}, {StringValue("x"), "x", String},
	} {
		v, err := ValueOf(test.of)
		if err != nil || v.String() != test.want || v.Kind() != test.kind {
			t.Errorf("%v is %v %q, %v; want %v %q", test.of, v.Kind(), v, err, test.kind, test.want)
		}
	}
	if v, err := ValueOf([]string{"a"}); err == nil {
		t.Errorf("a list became %v", v)
	}
	if n, ok := IntValue(3).Number(); !ok || n != 3 {
		t.Errorf("3 is the number %v, %v", n, ok)
	}
	if _, ok := StringValue("3").Number(); ok {
		t.Error("a string is taken for a number")
	}
}

// oddText is short and made of the bytes that the code treats specially.
func oddText() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 255}), 0, 4), func(b []byte) string { return string(b) })
}

func aValue() *rapid.Generator[Value] {
	return rapid.OneOf(
		rapid.SampledFrom(inOrder),
		rapid.Map(rapid.Int64(), IntValue), rapid.Map(rapid.Float64(), FloatValue),
		rapid.Map(rapid.String(), StringValue), rapid.Map(oddText(), StringValue),
		rapid.Map(rapid.Int64Range(-1e10, 1e10), func(n int64) Value { return TimeValue(time.Unix(n, n&0xffff)) }),
	)
}

// Rows of values compare as their codes do, and the order is total.
func TestOrderedRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SliceOfN(aValue(), 0, 3)
		a, b := row.Draw(t, "a"), row.Draw(t, "b")
		code := func(row []Value) (code []byte) {
			for _, v := range row {
				code = v.AppendOrdered(code)
			}
			return code
		}
		want := slices.CompareFunc(a, b, Value.Compare)
		if got := slices.Compare(code(a), code(b)); got != want {
			t.Fatalf("rows compare as %d, their codes as %d", want, got)
		}
		if (want == 0) != slices.Equal(a, b) {
			t.Fatalf("%v and %v compare as %d", a, b, want)
		}
		rest := string(code(a))
		for _, v := range a {
			var back Value
			var err error
			if back, rest, err = ReadOrdered(rest); err != nil || back != v {
				t.Fatalf("%v is read back as %v, %v", v, back, err)
			}
		}
	})
}

func TestOrderedPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := oddText()
		s, prefix := text.Draw(t, "s"), text.Draw(t, "prefix")
		has := len(s) >= len(prefix) && s[:len(prefix)] == prefix
		start := AppendOrderedPrefix(nil, prefix)
		code := StringValue(s).AppendOrdered(nil)
		if got := len(code) >= len(start) && slices.Equal(code[:len(start)], start); got != has {
			t.Fatalf("%q with prefix %q: by code %v, is %v", s, prefix, got, has)
		}
	})
}

func FuzzReadOrdered(f *testing.F) {
	for _, v := range inOrder {
		f.Add(string(v.AppendOrdered(nil)))
	}
	f.Fuzz(func(t *testing.T, code string) {
		v, rest, err := ReadOrdered(code)
		if err != nil {
			return
		}
		if again, _, err := ReadOrdered(string(v.AppendOrdered(nil))); err != nil || again != v || len(rest) >= len(code) {
			t.Fatalf("%q is %v, which is read back as %v, %v", code, v, again, err)
		}
	})
}
