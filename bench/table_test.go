package main

import (
	"bytes"
	"testing"
)

func TestTable(t *testing.T) {
	round := func(wall, heap, calls float64) result {
		return result{{"wall time", wall, seconds}, {"heap growth", heap, size}, {"calls", calls, number}}
	}
	rows := rowsOf("storm", map[string][]result{
		"client-go": {round(4, 64<<20, 1_500_000), round(2, 32<<20, 1_500_000), round(9, 96<<20, 1_500_000)},
		"tarn":      {round(1, 16<<20, 1_000), round(3, 16<<20, 2_000)},
	})
	rows = append(rows, rowsOf("calm", map[string][]result{
		"client-go": {{{"heap growth", 5 << 10, size}, {"events", 1234, perSecond}}},
		"tarn":      {{{"heap growth", -3 << 20, size}}},
	})...)
	var out bytes.Buffer
	printTable(&out, rows)
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

func TestThousands(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 99.6: "100"} {
		if got := thousands(v); got != want {
			t.Errorf("thousands(%v) = %s, want %s", v, got, want)
		}
	}
}
