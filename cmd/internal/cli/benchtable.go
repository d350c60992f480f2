package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/measure"
	"k8s.io/cli-runtime/pkg/printers"
)

// printVerdicts prints both holders of each resource, one below the other, and the second
// relative to the first.
func printVerdicts(out io.Writer, verdicts []verdict, rounds int) error {
	w := printers.GetNewTabWriter(out)
	fmt.Fprintln(w, "RESOURCE\tOBJECTS\tHOLDER\tHEAP\tPER OBJECT\tHEAP OBJECTS\tPEAK\tSYNC\tCPU")
	for _, v := range verdicts {
		printResult(w, v.Resource, "client-go", v.ClientGo)
		printResult(w, "", "tarn", v.Tarn)
		fmt.Fprintf(w, "\t\t\t%s\t\t%s\t%s\t%s\t%s\n",
			times(float64(v.ClientGo.Heap), float64(v.Tarn.Heap)),
			times(float64(v.ClientGo.HeapObjects), float64(v.Tarn.HeapObjects)),
			times(float64(v.ClientGo.Peak), float64(v.Tarn.Peak)),
			times(v.ClientGo.Sync.Seconds(), v.Tarn.Sync.Seconds()),
			times(v.ClientGo.CPU.Seconds(), v.Tarn.CPU.Seconds()))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, v := range verdicts {
		if v.ClientGo.Transport != "" {
			fmt.Fprintf(out, "\n%s came by %s to client-go, and by %s to tarn.", v.Resource, v.ClientGo.Transport, v.Tarn.Transport)
		}
	}
	_, err := fmt.Fprintf(out, "\nEach figure is the median of %s in fresh processes.\n", plural(rounds, "round"))
	return err
}

func printResult(w io.Writer, resource, holder string, r measure.Result) {
	perObject := "-"
	if r.Objects > 0 {
		perObject = size(r.Heap / uint64(r.Objects))
	}
	peak := "-"
	if r.Peak > 0 {
		peak = size(r.Peak)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", resource, thousands(r.Objects), holder,
		size(r.Heap), perObject, thousands(int(r.HeapObjects)), peak, short(r.Sync), short(r.CPU))
}

// short formats a duration with three digits.
func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// times says how the second figure compares: 4.2x less, 1.3x more.
func times(first, second float64) string {
	switch {
	case first <= 0 || second <= 0:
		return ""
	case first < second*1.05 && second < first*1.05:
		return "the same"
	case second < first:
		return fmt.Sprintf("%.1fx less", first/second)
	}
	return fmt.Sprintf("%.1fx more", second/first)
}
