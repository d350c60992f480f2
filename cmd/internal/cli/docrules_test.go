package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tarnproject/tarn/internal/pgtest"
	"github.com/tarnproject/tarn/jetstream/embedded"
)

// exists looks at a mention of the program: there must be such a command, and such
// flags.
func (s *docStage) exists(args []string) error {
	root := s.app("tarn", nil, nil, nil, nil).rootCommand()
	cmd, _, err := root.Find(args)
	if err != nil || cmd == root && !strings.HasPrefix(args[0], "-") {
		return fmt.Errorf("there is no command %q", args[0])
	}
	cmd.InitDefaultHelpFlag()
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		var flag *pflag.Flag
		switch {
		case strings.HasPrefix(arg, "--"):
			flag = cmd.Flag(name)
		case strings.HasPrefix(arg, "-") && name != "":
			if flag = cmd.Flags().ShorthandLookup(name[:1]); flag == nil {
				flag = cmd.InheritedFlags().ShorthandLookup(name[:1])
			}
		default:
			continue
		}
		if flag == nil {
			return fmt.Errorf("%s has no flag %s", cmd.Name(), arg)
		}
	}
	return nil
}

// kubectl runs the program that KUBECTL names. One that watches is ended when it
// has said something.
func (s *docStage) kubectl(args []string) (string, error) {
	program := os.Getenv("KUBECTL")
	if program == "" {
		return "", fmt.Errorf("%w: set KUBECTL to the path of a kubectl", errNotHere)
	}
	ctx, end := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer end()
	command := exec.CommandContext(ctx, program, args...)
	out := &alarm{}
	live := slices.Contains(args, "-w") || slices.Contains(args, "--watch")
	if live {
		out.text, out.ring = "\n", end
	}
	var complaint bytes.Buffer
	command.Stdout, command.Stderr = out, &complaint
	err := command.Run()
	if live && errors.Is(ctx.Err(), context.Canceled) {
		err = nil
	}
	if err != nil || out.String() == "" {
		return "", fmt.Errorf("%v\n%s%s", err, out, complaint.String())
	}
	return out.String(), nil
}

// docDatabase is the database in the examples of the documents.
const docDatabase = "postgres://tarn@db.example/fleet"

// withDatabase returns arguments that name a real database in the place of that one.
func (s *docStage) withDatabase(args []string) ([]string, error) {
	if !slices.Contains(args, docDatabase) {
		return s.withBroker(args)
	}
	if s.database == "" {
		database, err := newDatabase()
		if errors.Is(err, pgtest.ErrNotInstalled) {
			return nil, fmt.Errorf("%w: %v", errNotHere, err)
		}
		if err != nil {
			return nil, err
		}
		s.database = database
	}
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == docDatabase {
			args[i] = s.database
		}
	}
	return args, nil
}

// docBroker is the NATS server in the examples of the documents.
const docBroker = "nats://nats.example:4222"

// withBroker returns arguments that name a real server in the place of that one, and have a
// server that comes with the command listen on a free port.
func (s *docStage) withBroker(args []string) ([]string, error) {
	args = slices.Clone(args)
	for i, arg := range args {
		switch {
		case arg == "nats":
			return append(args, "--nats-listen", "127.0.0.1:0"), nil
		case strings.HasPrefix(arg, docBroker):
			server, err := embedded.Start(embedded.Options{Dir: s.t.TempDir(), Listen: "127.0.0.1:0"})
			if err != nil {
				return nil, err
			}
			s.t.Cleanup(server.Stop)
			args[i] = server.URL() + strings.TrimPrefix(arg, docBroker)
		}
	}
	return args, nil
}

// docPage is the page in the examples of the documents.
const docPage = "http://127.0.0.1:8276"

// withPage serves a page with a copy on disk, and gives its address. Its token is in a
// file that some line before has made.
func (s *docStage) withPage(use func(page string)) error {
	var complaint lockedBuffer
	ended := serving(s.t.Context(), s.app("tarn", nil, nil, &complaint, nil), func(page string) {
		for status := 0; status != http.StatusOK; { // each request takes its time
			status, _ = fetch(s.t, page+"readyz", "")
		}
		use(strings.TrimSuffix(page, "/"))
	}, "pods", "deployments", "-A", "--to", filepath.Join(s.t.TempDir(), "page"), "--page-token-file", "token")
	if ended.code != exitOK {
		return errors.New(complaint.String())
	}
	return nil
}

// sqlOfPage runs a line that asks the page of the documents.
func (s *docStage) sqlOfPage(args []string, environment map[string]string) (out string, err error) {
	failed := s.withPage(func(page string) {
		args = slices.Clone(args)
		args[slices.Index(args, docPage)] = page
		var said, complaint lockedBuffer
		if code := s.app("tarn", strings.NewReader(""), &said, &complaint, environment).main(s.t.Context(), args); code != exitOK {
			err = errors.New(result{code, said.String(), complaint.String()}.String())
		}
		out = said.String()
	})
	return out, errors.Join(failed, err)
}

// curl asks a page for what the line asks of the one that documents speak of.
func (s *docStage) curl(args []string) (out string, err error) {
	var asked []*url.URL
	header, data := http.Header{}, ""
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case strings.HasPrefix(arg, "-") && strings.Trim(arg[1:], "sSfN") == "":
		case arg == "-H" && i+1 < len(args):
			i++
			line := args[i]
			if file, ok := strings.CutPrefix(line, "@"); ok {
				content, err := os.ReadFile(file)
				if err != nil {
					return "", err
				}
				line = strings.TrimSpace(string(content))
			}
			name, value, _ := strings.Cut(line, ": ")
			header.Set(name, value)
		case arg == "--data-binary" && i+1 < len(args):
			i++
			data = args[i]
		default:
			address, err := url.Parse(arg)
			if err != nil || "http://"+address.Host != docPage {
				return "", fmt.Errorf("no rule of this test knows %s for curl", arg)
			}
			asked = append(asked, address)
		}
	}
	failed := s.withPage(func(page string) {
		for _, address := range asked {
			status, body := s.request(page+address.RequestURI(), header, data)
			if status != http.StatusOK || body == "" {
				err = errors.Join(err, fmt.Errorf("%s is answered by %d: %s", address, status, body))
			}
			out += body
		}
	})
	return out, errors.Join(failed, err)
}

// request is a GET, or a POST of data.
func (s *docStage) request(address string, header http.Header, data string) (status int, body string) {
	method := http.MethodGet
	if data != "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, address, strings.NewReader(data))
	if err != nil {
		return 0, err.Error()
	}
	request.Header = header
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(raw)
}

// The rules must see what they are there to see.
func TestDocRules(t *testing.T) {
	session := newDocStage(t)
	write(t, "token", "0123456789abcdef")
	write(t, "auth", "Authorization: Bearer 0123456789abcdef\n")
	for text, want := range map[string]string{
		"tarn get pods -A # all":                            "",
		"tarn gte pods":                                     `no command "gte"`,
		"tarn get pods --colour":                            "no flag --colour",
		"tarn get deployment/nobody":                        "not found",
		"tarn get pods -l app=nobody":                       "No resources found",
		"TARN_OUTPUT=name tarn get deploy":                  "",
		"TARN_OUTPUT=nonsense tarn get deploy":              "-o cannot be",
		"tarn watch pods -A | grep shop":                    "",
		"tarn watch pods -A | frobnicate":                   `knows "frobnicate" behind a |`,
		"N=$(tarn query pods --count)":                      "",
		"tarn query pods --limit $M":                        "no line before sets $M",
		"source <(tarn completion bash)":                    "",
		"source <(tarn completion basic)":                   "no completion",
		"kubectl tarn version":                              "",
		"make test":                                         "",
		"make coffee":                                       "coffee",
		"make sim SEDS=1":                                   "no variable SEDS",
		"make e2e E2E='-run Nothing'":                       "-run Nothing matches no test",
		"make e2e E2E='-run Scenarios/nowhere_to_be_found'": "nothing there is called nowhere",
		"make e2e E2E='-pots 3'":                            "no flag -pots",
		"go test -run TestGet ./cmd/internal/cli":           "",
		"go test -run TestNothing ./cmd/internal/cli":       "matches no test",
		"go test ./nothing":                                 "no folder nothing",
		"go run ./cmd/tarn version":                         "",
		"go run ./docs":                                     "nothing to be run",
		"go fmt ./...":                                      `knows "go fmt`,
		"cd nothing && go test":                             "no folder nothing",
		"curl -s http://127.0.0.1:8276/healthz":             "",
		"curl -s http://127.0.0.1:8276/metrics":             "is answered by 401",
		"curl -s -H @auth http://127.0.0.1:8276/metrics":    "",
		"curl -s -H @auth http://127.0.0.1:8276/nothing":    "is answered by 404",
		"curl -s -H @none http://127.0.0.1:8276/metrics":    "none: no such file",
		"chmod 600 token":                                   "",
		"chmod 600 none":                                    "none: no such file",
		"echo \"Authorization: Bearer $(cat token)\" > a":   "",
		"cat none":                  "none: no such file",
		"curl https://example.com/": "no rule",
		"tarn sql --from http://127.0.0.1:8276 'SELECT 1'":                         "wants a token",
		"tarn sql --from http://127.0.0.1:8276 'SELECT 1' --page-token-file token": "",
		"tarn sql --from http://127.0.0.1:8276 'SELEC 1' --page-token-file token":  "syntax error",
		"openssl rand -hex 16 > other":                                             "",
		"frobnicate the server":                                                    `knows "frobnicate the server"`,
	} {
		switch err := session.try(docLine{text: text}); {
		case errors.Is(err, errNotHere):
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: says %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"tarn mirror --verify=…": "", "tarn serve": "", "kubectl tarn get": "", "tarn get -A": "",
		"tarn mirrror": `no command "mirrror"`, "tarn mirror --verifiy": "no flag --verifiy", "tarn get -Z": "no flag -Z",
	} {
		err := session.try(docLine{text: text, mention: true})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("a mention of %s: says %v, want %q", text, err, want)
		}
	}
}

func TestDocLines(t *testing.T) {
	const text = "Say `make test` or `tarn get`, not `make`.\n\n    a ──▶ b\n" +
		"    tarn get pods \\\n      -A   # all\n    frobnicate\nThat is all.\n    a ──▶ b\n    T=$(tarn version)\n\n" +
		"```sh\n# a comment\n$ frobnicate\n\n```\n```go\ngo test\n```\n```\nno command\nmake run\n```\n"
	var got []string
	for _, line := range commandLines("a.md", text) {
		got = append(got, fmt.Sprintf("%s %s %v", line.where, line.text, line.mention))
	}
	want := []string{
		"a.md:1 make test true", "a.md:1 tarn get true", "a.md:5 tarn get pods -A   # all false", "a.md:6 frobnicate false",
		"a.md:9 T=$(tarn version) false", "a.md:13 frobnicate false", "a.md:21 make run false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What the help shows must be there too; its names are made up.
func TestHelpExamples(t *testing.T) {
	session := &docStage{t: t}
	for name, cmd := range commands(t) {
		for line := range strings.Lines(cmd.Example) {
			args, ok := strings.CutPrefix(strings.TrimSpace(line), "tarn ")
			if !ok {
				continue
			}
			if err := session.exists(strings.Fields(args)); err != nil {
				t.Errorf("%s: %s: %v", name, line, err)
			}
		}
	}
}
