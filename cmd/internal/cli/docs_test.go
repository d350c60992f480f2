package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/demo"
	"github.com/tarnproject/tarn/cmd/internal/term"
)

// TestDocs runs every command line of README.md, CONTRIBUTING.md and docs: those
// of tarn against a cluster with the life of the demonstration on it, others as
// far as it can be done in seconds. A line that no rule knows is an error, so that
// no document can say what nobody has tried. With -short most lines of tarn are only read.
func TestDocs(t *testing.T) {
	lines, err := docLines()
	if err != nil {
		t.Fatal(err)
	}
	session := newDocStage(t)
	session.brief = testing.Short()
	tried := map[string]bool{}
	for _, line := range lines {
		key := line.text
		if line.mention && strings.Contains(key, "tarn ") {
			key = "mention of " + key
		}
		if !tried[key] || strings.Contains(line.text, "$") {
			tried[key] = true
			t.Run(line.where, func(t *testing.T) {
				session.t = t
				switch err := session.try(line); {
				case errors.Is(err, errNotHere):
					t.Skipf("%s: %v", line.text, err)
				case err != nil:
					t.Errorf("%s\n%v", line.text, err)
				}
			})
		}
	}
	if len(tried) < 20 {
		t.Errorf("only %d command lines were found", len(tried))
	}
}

// errNotHere is a line that cannot be tried on this machine.
var errNotHere = errors.New("not tried")

// docStage is what the lines of documents are run on.
type docStage struct {
	t          *testing.T
	repository string // absolute
	// variables are those of the shell.
	variables map[string]string
	// directory is where the line is, in the repository.
	directory string
	// database is made when a line needs it.
	database string
	// sources are the packages that lines have named.
	sources map[string]*docSource
	// brief has most lines only read.
	brief bool
}

// newDocStage starts a cluster, finds it as kubectl does, and changes to an empty folder with
// the files that the documents assume.
func newDocStage(t *testing.T) *docStage {
	t.Helper()
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	target, err := demo.On(server)
	if err != nil {
		t.Fatal(err)
	}
	// What examples call things, beside what the demonstration does.
	web, waiting, served := pod("web-1", corev1.PodRunning), pod("web-2", corev1.PodPending), deployment("web")
	web.Namespace, waiting.Namespace, served.Namespace = "shop", "shop", "shop"
	life, err := demo.Build(t.Context(), target, demo.Config{Pods: 30, Databases: 3, Rate: 10, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Put(web, waiting, served); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	var living sync.WaitGroup
	living.Go(func() { life.Run(ctx) })
	living.Go(func() { stir(ctx, server, web) })
	t.Cleanup(func() { end(); living.Wait() })

	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	content, err := server.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = "shop"
	if err := os.Mkdir("clusters", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"east", "west"} { // the clusters of a fleet
		config.Contexts[name] = config.Contexts[config.CurrentContext]
		write(t, filepath.Join("clusters", name+".yaml"), string(content))
	}
	if err := clientcmd.WriteToFile(*config, os.Getenv("KUBECONFIG")); err != nil {
		t.Fatal(err)
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("page.example.com", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, "page.crt", string(certificate))
	write(t, "page.key", string(key))
	return &docStage{t: t, repository: repository, variables: map[string]string{}, sources: map[string]*docSource{}}
}

// stir changes a pod continuously, so that a line that waits for a change in its namespace
// does not depend on chance.
func stir(ctx context.Context, server *apiserver.Server, stirred *corev1.Pod) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			stirred = stirred.DeepCopy()
			stirred.Status.Message = fmt.Sprint("stirred ", n)
			_ = server.Put(stirred)
		}
	}
}

// try runs a line, or looks at it if it is a mention.
func (s *docStage) try(line docLine) error {
	if inner, ok := strings.CutPrefix(line.text, "source <("); ok {
		line.text = strings.TrimSuffix(inner, ")")
	}
	words, err := shellWords(line.text, s.expand)
	if err != nil {
		return err
	}
	if at := slices.Index(words[:min(2, len(words))], "tarn"); at >= 0 && (line.mention || s.isOnlyRead(line, words)) {
		command := words[at+1:]
		if end := slices.IndexFunc(command, isOperator); end >= 0 {
			command = command[:end]
		}
		return s.exists(command)
	}
	s.directory = ""
	_, err = s.run(words)
	return err
}

// isOnlyRead says whether a line of a page is compared with the commands and flags of the
// program and not run: in a brief run, on all pages but the two that a user reads first. A
// line runs a whole program, which takes a second under the race detector. One that writes
// a file is run, because a later one may read it.
func (s *docStage) isOnlyRead(line docLine, words []string) bool {
	first := strings.HasPrefix(line.where, "README.md:") || strings.HasPrefix(line.where, "docs/program.md:")
	written := slices.Contains(words, ">") || slices.Contains(words, "--to") && !slices.Contains(words, "feed")
	return s.brief && !first && !written
}

func isOperator(word string) bool { return strings.Trim(word, "|>&;<") == "" && word != "" }

// expand gives the value of a variable, or what a command prints.
func (s *docStage) expand(name string) (string, error) {
	command, ok := strings.CutPrefix(name, "(")
	if !ok {
		value, ok := s.variables[name]
		if !ok {
			return "", fmt.Errorf("no line before sets $%s", name)
		}
		return value, nil
	}
	words, err := shellWords(command, s.expand)
	if err != nil {
		return "", err
	}
	out, err := s.run(words)
	return strings.TrimSuffix(out, "\n"), err
}

var assignment = regexp.MustCompile(`^(\w+)=(.*)$`)

// run runs the commands of a line one after the other, and gives what the last
// one printed. What they are piped into must be something that people have.
func (s *docStage) run(words []string) (out string, err error) {
	for len(words) > 0 {
		end := slices.IndexFunc(words, isOperator)
		command, operator := words, ""
		if end >= 0 {
			command, operator = words[:end], words[end]
			words = words[end+1:]
		} else {
			words = nil
		}
		if out, err = s.command(command); err != nil {
			return out, err
		}
		switch operator {
		case "", "&&", ";", "&":
		case ">", ">>":
			if len(words) != 1 {
				return out, fmt.Errorf("%s wants a file", operator)
			}
			return out, os.WriteFile(filepath.Base(words[0]), []byte(out), 0o600)
		case "|":
			if !slices.Contains([]string{"grep", "head", "jq", "less", "sort", "wc"}, words[0]) {
				return out, fmt.Errorf("no rule of this test knows %q behind a |", words[0])
			}
			return out, nil
		default:
			return out, fmt.Errorf("no rule of this test knows %q", operator)
		}
	}
	return out, nil
}

// command is where the rules are.
func (s *docStage) command(words []string) (out string, err error) {
	environment := map[string]string{}
	for len(words) > 0 && assignment.MatchString(words[0]) {
		parts := assignment.FindStringSubmatch(words[0])
		environment[parts[1]] = parts[2]
		words = words[1:]
	}
	if len(words) == 0 {
		for name, value := range environment {
			s.variables[name] = value
		}
		return "", nil
	}
	args := words[1:]
	switch words[0] {
	case "tarn", "bin/tarn":
		return s.tarn("tarn", args, environment)
	case "kubectl":
		if len(args) > 0 && args[0] == "tarn" {
			return s.tarn("kubectl tarn", args[1:], environment)
		}
		return s.kubectl(args)
	case "make":
		return "", s.make(args)
	case "go":
		return "", s.goTool(args)
	case "curl":
		return s.curl(args)
	case "cd":
		s.directory = filepath.Join(s.directory, args[0])
		return "", s.isFolder(".")
	case "export":
		if len(args) == 1 && assignment.MatchString(args[0]) {
			return s.command(args)
		}
	case "echo":
		return strings.Join(args, " ") + "\n", nil
	case "cat":
		if len(args) == 1 {
			content, err := os.ReadFile(args[0])
			return string(content), err
		}
	case "chmod":
		if len(args) == 2 && args[0] == "600" {
			return "", os.Chmod(args[1], 0o600)
		}
	case "openssl":
		if size := map[string]int{"rand -hex 16": 16, "rand -hex 32": 32}[strings.Join(args, " ")]; size > 0 {
			secret := make([]byte, size)
			rand.Read(secret)
			return hex.EncodeToString(secret) + "\n", nil
		}
	}
	return "", fmt.Errorf("no rule of this test knows %q: write the line so that one does, or teach it the command", strings.Join(words, " "))
}

// tarn runs the program. The address to listen on may be in use, and large numbers take long:
// later flags win.
func (s *docStage) tarn(program string, args []string, environment map[string]string) (string, error) {
	live := slices.Contains(args, "-w") || slices.Contains(args, "--watch")
	full := slices.Clone(args)
	switch args[0] {
	case "watch", "mirror":
		live = true
	case "replay":
		full, live = append(full, "--since", "1ms"), true // the history is as old as this test
		if i := slices.Index(full, "--until"); i >= 0 {
			full = slices.Delete(full, i, i+2)
		}
	case "feed":
		var err error
		if full, err = s.withDatabase(full); err != nil {
			return "", err
		}
		live = true
	case "serve", "relay":
		full, live = append(full, "--listen", "127.0.0.1:0"), true
	case "demo":
		full, live = append(full, "--listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0", "--pods", "10", "--crs", "1"), true
	case "bench":
		full = append(full, "--rounds", "1")
	}
	if slices.Contains(args, "--as-of") {
		full = append(full, "--as-of", "1ms") // the history is as old as this test
	}
	ctx, interrupt := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer interrupt()
	out, errOut := &alarm{}, &lockedBuffer{}
	if live {
		out.text, out.ring = "\n", interrupt
	}
	switch {
	case live && args[0] == "mirror" && slices.Contains(args, "--to"):
		out.text = "synced " // all of it, for lines that read the directory
	case args[0] == "feed":
		out.text = "synced "
	case live && args[0] == "serve" && slices.Contains(args, "--to"):
		out.text = "Synced "
	case slices.Contains(args, docPage):
		return s.sqlOfPage(full, environment)
	}
	code := s.app(program, strings.NewReader(""), out, errOut, environment).main(ctx, full)
	if code != exitOK || strings.Contains(errOut.String(), "tarn: ") || out.String() == "" {
		return "", errors.New(result{code, out.String(), errOut.String()}.String())
	}
	return out.String(), nil
}

func (s *docStage) app(program string, in io.Reader, out, errOut io.Writer, environment map[string]string) *app {
	return &app{
		program: program, in: in, out: out, errOut: errOut,
		getenv:   func(name string) (string, bool) { value, ok := environment[name]; return value, ok },
		terminal: func() (term.Terminal, bool) { return nil, false },
		execute: func(ctx context.Context, args, _ []string, stdin io.Reader) ([]byte, error) {
			var out, errOut lockedBuffer
			if code := s.app(program, stdin, &out, &errOut, environment).main(ctx, args); code != exitOK {
				return nil, errors.New(errOut.String())
			}
			return out.Bytes(), nil
		},
	}
}
