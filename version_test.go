package tarn

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestVersionCompare(t *testing.T) {
	for _, test := range []struct {
		a, b  Version
		want  int
		known bool
	}{
		{"1", "2", -1, true},
		{"2", "1", 1, true},
		{"7", "7", 0, true},
		{"9", "10", -1, true},
		{"007", "7", 0, true},
		{"0", "", 0, false},
		{"0", "000", 0, true},
		{"0", "1", -1, true},
		{"99999999999999999999999998", "99999999999999999999999999", -1, true},
		{"18446744073709551616", "18446744073709551615", 1, true}, // beyond 64 bits
		{"", "", 0, false},
		{"", "1", 0, false},
		{"1", "", 0, false},
		{"abc", "abc", 0, false},
		{"1a", "2", 0, false},
		{"-1", "1", 0, false},
		{"+1", "1", 0, false},
		{" 1", "1", 0, false},
		{"1.0", "1", 0, false},
		{"١", "1", 0, false}, // a digit, but not of ours
	} {
		got, known := test.a.Compare(test.b)
		if got != test.want || known != test.known {
			t.Errorf("%q compared to %q is %d, %v; want %d, %v", test.a, test.b, got, known, test.want, test.known)
		}
		if older := test.a.OlderThan(test.b); older != (test.known && test.want < 0) {
			t.Errorf("%q older than %q: %v", test.a, test.b, older)
		}
	}
}

// Decimal versions are ordered as the numbers they are, whatever their length.
func TestVersionsAreNumbers(t *testing.T) {
	decimal := rapid.StringMatching(`[0-9]{1,40}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := decimal.Draw(t, "a"), decimal.Draw(t, "b")
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		if got, known := Version(a).Compare(Version(b)); !known || got != x.Cmp(y) {
			t.Fatalf("%s compared to %s is %d, %v", a, b, got, known)
		}
	})
}
