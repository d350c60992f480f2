package report

import (
	"bytes"
	"testing"
)

func TestSideBySide(t *testing.T) {
	round := func(wall, heap, calls float64) Result {
		return Result{{"wall time", wall, Seconds}, {"heap growth", heap, Bytes}, {"calls", calls, Number}}
	}
	both := []string{"client-go", "tarn"}
	rows := RowsOf("storm", both, map[string][]Result{
		"client-go": {round(4, 64<<20, 1_500_000), round(2, 32<<20, 1_500_000), round(9, 96<<20, 1_500_000)},
		"tarn":      {round(1, 16<<20, 1_000), round(3, 16<<20, 2_000)},
	})
	rows = append(rows, RowsOf("calm", both, map[string][]Result{
		"client-go": {{{"heap growth", 5 << 10, Bytes}, {"events", 1234, PerSecond}}},
		"tarn":      {{{"heap growth", -3 << 20, Bytes}}},
	})...)
	var out bytes.Buffer
	SideBySide(&out, both, rows)
	want := `
| scenario | measure     | client-go |     tarn | tarn/client-go |
| ---      | ---         |      ---: |     ---: |           ---: |
| storm    | wall time   |    4.00 s |   2.00 s |          0.500 |
|          | heap growth |  64.0 MiB | 16.0 MiB |          0.250 |
|          | calls       | 1,500,000 |    1,500 |          0.001 |
| calm     | heap growth |   0.0 MiB | -3.0 MiB |              - |
|          | events      |   1,234/s |        - |              - |
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("table:%swant:%s", got, want)
	}
}

func TestUnits(t *testing.T) {
	for _, test := range []struct {
		unit  Unit
		value float64
		want  string
	}{
		{Number, 0, "0"}, {Number, 999, "999"}, {Number, 1000, "1,000"}, {Number, -1234567, "-1,234,567"}, {Number, 99.6, "100"},
		{Seconds, 1.5, "1.50 s"}, {Seconds, 0.0123, "12.3 ms"}, {Seconds, 42e-6, "42.0 µs"}, {Seconds, 90e-9, "90 ns"}, {Seconds, 0, "0.00 s"},
		{Small, 23_100, "23.10 KB"}, {Fraction, 19.64, "19.6"}, {Bytes, 3 << 20, "3.0 MiB"}, {PerSecond, 1234, "1,234/s"},
	} {
		if got := test.unit.Format(test.value); got != test.want {
			t.Errorf("%v of %s is written %q, want %q", test.value, test.unit, got, test.want)
		}
	}
}
