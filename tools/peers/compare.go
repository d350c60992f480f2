package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// compare runs the project's tests with theirs and with each swap, and prints what
// differs. fine says that nothing does but what is known.
func (m *module) compare() (fine bool, err error) {
	if err := m.prepare(); err != nil {
		return false, err
	}
	stock, err := m.test("stock", "", m.packages, "")
	if err != nil {
		return false, err
	}
	tests, failed, skipped := stock.count()
	fmt.Printf("%s %s, stock: %d tests, %d of them fail, %d are skipped\n", m.name, m.version, tests, failed, skipped)
	for t, state := range stock {
		if state == "fail" && (t.name == "" || strings.Contains(t.name, "BeforeSuite")) {
			return false, fmt.Errorf("%s does not compile, crashes or does not even begin with client-go's own; see the log with -keep", t.pack)
		}
	}
	fine = true
	for _, s := range m.swaps {
		if m.ciOnly && !slices.Contains(m.ci, s.name) {
			continue
		}
		ok, err := m.compareSwap(s, stock)
		if err != nil {
			return false, fmt.Errorf("%s: %w", s.name, err)
		}
		fine = fine && ok
	}
	return fine, nil
}

func (m *module) compareSwap(s swap, stock results) (fine bool, err error) {
	overlay, changed, err := s.overlay(m.dir, m.dir+"-"+s.name)
	if err != nil {
		return false, err
	}
	if changed == 0 {
		return false, errors.New("nothing of the project uses what is swapped; correct projects.go")
	}
	swapped, err := m.test(s.name, overlay, m.packages, "")
	if err != nil {
		return false, err
	}
	found := differences(stock, swapped)
	for i := range found[:min(len(found), mostAgain)] {
		if err := m.again(s.name, overlay, &found[i]); err != nil {
			return false, err
		}
	}
	tests, failed, _ := swapped.count()
	fmt.Printf("%s %s, %s (%d files): %d tests, %d of them fail, %d differ\n", m.name, m.version, s.name, changed, tests, failed, len(found))
	text, fine := judge(s.name, found, m.known)
	fmt.Print(text)
	return fine, nil
}

// test runs the tests of packages, all or those that match.
func (m *module) test(name, overlay string, packages []string, only string) (results, error) {
	args := []string{"test", "-json", "-vet=off", "-count=1", "-p=2", "-timeout", cmp.Or(m.timeout, 10*time.Minute).String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if m.clientGo != "" {
		args = append(args, "-tags", olderTag)
	}
	if m.skip != "" && only == "" {
		args = append(args, "-skip", m.skip)
	}
	if only != "" && !m.ginkgo {
		args = append(args, "-run", only)
	}
	args = append(args, packages...)
	if m.ginkgo {
		args = append(args, "-ginkgo.json-report="+specReport)
		if only != "" {
			args = append(args, "-ginkgo.focus="+only)
		}
	}
	cmd := m.command(m.dir, args...)
	mark := filepath.Base(filepath.Dir(m.dir)) + "/" + m.name
	cmd.Env = append(cmd.Env, runMark+"="+mark)
	cmd.WaitDelay = 10 * time.Second // leftovers may hold the output open
	out, failed := cmd.CombinedOutput()
	endLeftovers(mark)
	if m.ctx.Err() != nil {
		return nil, m.ctx.Err()
	}
	if err := os.WriteFile(m.dir+"-"+name+".log", out, 0o666); err != nil {
		return nil, err
	}
	all, suites, err := parse(m.path, out)
	if err != nil {
		return nil, err
	}
	if m.ginkgo {
		if err := takeSpecs(m.dir, suites, all); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no test was run: %v: %s", failed, firstLines(out, 20))
	}
	return all, nil
}

func firstLines(out []byte, n int) string {
	lines := strings.SplitAfterN(string(out), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "")
}

// difference is a test whose result is not the same with theirs and with ours. A state
// is "" if the test was not there.
type difference struct {
	test
	stock, swapped string
	// Of the runs that followed, how many failed.
	runs, stockFailed, swappedFailed int
}

// differences returns the tests whose results differ. Of a test and its parts only the
// parts are named, and of a package that does not compile or crashes only the package.
func differences(stock, swapped results) (found []difference) {
	all := maps.Clone(stock)
	maps.Copy(all, swapped)
	tests := slices.SortedFunc(maps.Keys(all), compareTests)
	for i, t := range tests {
		if whole := (test{pack: t.pack}); stock[t] == swapped[t] || t != whole && swapped[whole] == "fail" && swapped[t] == "" {
			continue
		}
		if i+1 < len(tests) && tests[i+1].pack == t.pack && strings.HasPrefix(tests[i+1].name, t.name+"/") &&
			slices.ContainsFunc(tests[i+1:], func(part test) bool {
				return part.pack == t.pack && strings.HasPrefix(part.name, t.name+"/") && stock[part] != swapped[part]
			}) {
			continue
		}
		found = append(found, difference{test: t, stock: stock[t], swapped: swapped[t]})
	}
	return found
}

// mostAgain is how many tests are run again: so many do not differ by chance.
const mostAgain = 20

// again runs a test that differs a few times more, with theirs and with ours: a test that
// depends on time fails now and then with both.
func (m *module) again(name, overlay string, d *difference) error {
	if d.name == "" {
		return nil
	}
	only := focus(d.name, m.ginkgo)
	for range m.runs {
		d.runs++
		for _, run := range []struct {
			name, overlay string
			failed        *int
		}{{"stock", "", &d.stockFailed}, {name, overlay, &d.swappedFailed}} {
			got, err := m.test(run.name+"-again", run.overlay, []string{"./" + filepath.ToSlash(d.pack)}, only)
			if err != nil {
				return err
			}
			if got[d.test] != "pass" {
				*run.failed++
			}
		}
	}
	return nil
}

// focus is the regular expression for one test. Ginkgo puts the name of the suite before
// that of a spec.
func focus(name string, ginkgo bool) string {
	if ginkgo {
		return regexp.QuoteMeta(name) + "$"
	}
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(name), "/", "$/^") + "$"
}

// unsteady says that a test failed with ours at first and not again, or no oftener than
// with theirs.
func (d difference) unsteady() bool {
	return d.runs > 0 && d.swappedFailed <= d.stockFailed
}

func (d difference) String() string {
	state := func(s string) string {
		if s == "" {
			return "not there"
		}
		return s
	}
	text := fmt.Sprintf("%v: %s with theirs, %s with ours", d.test, state(d.stock), state(d.swapped))
	if d.runs > 0 {
		text += fmt.Sprintf("; of %d more runs %d failed with theirs and %d with ours", d.runs, d.stockFailed, d.swappedFailed)
	}
	return text
}

// judge returns what is printed of the differences, and whether they are as projects.go
// says.
func judge(swap string, found []difference, expected []known) (text string, fine bool) {
	var b strings.Builder
	fine = true
	seen := map[string]bool{}
	for _, d := range found {
		i := slices.IndexFunc(expected, func(k known) bool { return k.swap == swap && k.test == d.test.String() })
		switch {
		case i >= 0:
			seen[expected[i].test] = true
			fmt.Fprintf(&b, "  known: %v: %s\n", d, expected[i].why)
		case d.unsteady():
			fmt.Fprintf(&b, "  unsteady: %v\n", d)
		default:
			fine = false
			fmt.Fprintf(&b, "  DIFFERS: %v\n", d)
		}
	}
	for _, k := range expected {
		if k.swap == swap && !seen[k.test] {
			fine = false
			fmt.Fprintf(&b, "  NO LONGER: %s does not differ any more; remove it from tools/peers/projects.go\n", k.test)
		}
	}
	return b.String(), fine
}
