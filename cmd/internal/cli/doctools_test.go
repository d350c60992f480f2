package cli

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// make tries a target without running it. That knows no wrong names of variables,
// so these are looked for.
func (s *docStage) make(args []string) error {
	program, err := exec.LookPath("make")
	if err != nil {
		return fmt.Errorf("%w: there is no make", errNotHere)
	}
	makefile, err := os.ReadFile(filepath.Join(s.repository, "Makefile"))
	if err != nil {
		return err
	}
	for _, arg := range args {
		parts := assignment.FindStringSubmatch(arg)
		if parts != nil && !regexp.MustCompile(`(?m)^`+parts[1]+` \?=`).Match(makefile) {
			return fmt.Errorf("the Makefile has no variable %s that could be set", parts[1])
		}
	}
	command := exec.CommandContext(s.t.Context(), program, append([]string{"-n"}, args...)...)
	command.Dir = s.repository
	// The make that runs this test exports its flags, and the variables that it was given.
	command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "MAKE") || name == "MFLAGS" || regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+` \?=`).Match(makefile)
	})
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("make -n: %w\n%s", err, out)
	}
	return s.recipe(string(out))
}

var goInRecipe = regexp.MustCompile(`(?m)^(?:cd (\S+) && )?(?:\w+=\S* )*(go (?:test|run) .*)$`)

// recipe looks at what make would run of the go tool, which is where a variable's
// value comes to stand.
func (s *docStage) recipe(text string) error {
	for _, found := range goInRecipe.FindAllStringSubmatch(text, -1) {
		words, err := shellWords(found[2], s.expand)
		if err != nil {
			return err
		}
		s.directory = found[1]
		if _, err := s.run(words); err != nil {
			return err
		}
	}
	return nil
}

func (s *docStage) isFolder(path string) error {
	if info, err := os.Stat(filepath.Join(s.repository, s.directory, path)); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no folder %s", filepath.Join(s.directory, path))
	}
	return nil
}

// goTool looks at a line for the go tool: packages must be there, and with them
// the tests and flags that it names. Running or only listing them would mean to
// build them, which takes longer than all the rest.
func (s *docStage) goTool(args []string) error {
	if len(args) == 0 || !slices.Contains([]string{"test", "run", "build", "install", "get"}, args[0]) {
		return fmt.Errorf("no rule of this test knows \"go %s\"", strings.Join(args, " "))
	}
	var packages []string
	flags := map[string]string{}
	for rest := args[1:]; len(rest) > 0; rest = rest[1:] {
		name, value, assigned := strings.Cut(strings.TrimLeft(rest[0], "-"), "=")
		switch {
		case !strings.HasPrefix(rest[0], "-"):
			packages = append(packages, rest[0])
		case !assigned && len(rest) > 1 && !slices.Contains(switches, name):
			flags[name], rest = rest[1], rest[1:]
		default:
			flags[name] = value
		}
		if args[0] == "run" && len(packages) > 0 {
			break // what follows is the program's
		}
	}
	if len(packages) == 0 {
		packages = []string{"."}
	}
	found, err := s.source(packages, args[0] == "test")
	if err != nil || args[0] != "test" {
		return err
	}
	return checkTestFlags(found, flags)
}

var (
	// switches are flags of go test without a value, others those that it has
	// itself.
	switches = []string{"v", "race", "short", "benchmem", "failfast", "json"}
	others   = []string{"count", "vet", "timeout", "benchtime", "cpu", "parallel", "tags", "o", "gcflags"}
)

func checkTestFlags(found *docSource, flags map[string]string) error {
	for name, value := range flags {
		switch {
		case slices.Contains([]string{"run", "skip", "bench", "fuzz"}, name):
			first, inner, _ := strings.Cut(value, "/")
			pattern, err := regexp.Compile(first)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(found.tests, pattern.MatchString) {
				return fmt.Errorf("-%s %s matches no test", name, first)
			}
			if inner != "" && !strings.Contains(strings.ReplaceAll(found.text, " ", "_"), inner) {
				return fmt.Errorf("-%s %s: nothing there is called %s", name, value, inner)
			}
		case slices.Contains(switches, name), slices.Contains(others, name):
		case !slices.ContainsFunc(found.flags, func(line string) bool { return strings.Contains(line, `"`+name+`"`) }):
			return fmt.Errorf("the tests have no flag -%s", name)
		}
	}
	return nil
}

var (
	testName = regexp.MustCompile(`^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`)
	testFlag = regexp.MustCompile(`\b(?:flag\.\w+|testsize\.Flag)\(.*`)
)

// docSource is the text of packages, with the names of their tests, and the lines that
// define flags.
type docSource struct {
	text         string
	tests, flags []string
}

// source is that of the tests of packages, or of the rest. Each must have some; packages of
// other modules are ignored. It is read once: many lines name the same packages.
func (s *docStage) source(packages []string, tests bool) (*docSource, error) {
	key := fmt.Sprint(s.directory, packages, tests)
	if found := s.sources[key]; found != nil {
		return found, nil
	}
	text, err := s.readSource(packages, tests)
	if err != nil {
		return nil, err
	}
	found := &docSource{text: text}
	for line := range strings.Lines(text) {
		if m := testName.FindStringSubmatch(line); m != nil {
			found.tests = append(found.tests, m[1])
		}
		if strings.Contains(line, "lag") && testFlag.MatchString(line) {
			found.flags = append(found.flags, line)
		}
	}
	s.sources[key] = found
	return found, nil
}

func (s *docStage) readSource(packages []string, tests bool) (string, error) {
	var all strings.Builder
	for _, path := range packages {
		folder, tree := strings.CutSuffix(path, "/...")
		if folder != "." && !strings.HasPrefix(folder, "./") {
			continue
		}
		if err := s.isFolder(folder); err != nil {
			return "", err
		}
		found := false
		start := filepath.Join(s.repository, s.directory, folder)
		err := filepath.WalkDir(start, func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				if file != start && (!tree || strings.HasPrefix(entry.Name(), ".")) {
					return fs.SkipDir
				}
				return nil
			}
			if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") != tests {
				return nil
			}
			found = true
			text, err := os.ReadFile(file)
			all.Write(text)
			return err
		})
		if err != nil {
			return "", err
		}
		if !found {
			return "", fmt.Errorf("%s has nothing to be run", path)
		}
	}
	return all.String(), nil
}
