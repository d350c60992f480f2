package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands lists those that people can call.
func commands(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	found := map[string]*cobra.Command{}
	for _, cmd := range newRig(t).app(nil, nil).rootCommand().Commands() {
		if cmd.IsAvailableCommand() {
			found[cmd.Name()] = cmd
		}
	}
	return found
}

// TestHelp keeps what people read in testdata/help.
func TestHelp(t *testing.T) {
	r := newRig(t)
	golden(t, "help/tarn", r.run().String())
	golden(t, "help/options", r.run("options").String())
	if got, want := r.run("help", "get"), r.run("get", "--help"); got != want {
		t.Errorf("help get and get --help differ:\n%s", got)
	}
	if got, want := r.run("help"), r.run("--help"); got != want || got != r.run() {
		t.Errorf("help, --help and nothing at all differ:\n%s", got)
	}
	for name, cmd := range commands(t) {
		if name == "options" {
			continue
		}
		if cmd.Example == "" || cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%s has no example, or does not say what it does", name)
		}
		got := r.run(name, "--help")
		golden(t, "help/"+name, got.String())
		for line := range strings.Lines(cmd.Long) {
			if len([]rune(strings.TrimSuffix(line, "\n"))) > 80 {
				t.Errorf("%s: its help is too wide for a terminal: %q", name, line)
			}
		}
	}
}

// Where a Service is called tarn, Kubernetes sets TARN_PORT and TARN_SERVICE_… in
// every pod, which must mean nothing to the program.
func TestNoFlagIsSetByKubernetes(t *testing.T) {
	for name, cmd := range commands(t) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if v := variable(f.Name); strings.HasPrefix(v, "TARN_PORT") || strings.HasPrefix(v, "TARN_SERVICE_") {
				t.Errorf("--%s of %s would be set by Kubernetes, as %s", f.Name, name, v)
			}
		})
	}
}

func TestPluginNamesItself(t *testing.T) {
	r := newRig(t)
	r.program = programName("/usr/bin/kubectl-tarn")
	for name := range commands(t) {
		got := r.run(name, "--help")
		for line := range strings.Lines(got.out) {
			if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "tarn ") || strings.Contains(line, `"tarn `) {
				t.Errorf("the help of %s calls the program %q", name, trimmed)
			}
		}
	}
	if got := r.run("gte"); got.err != "tarn: there is no command \"gte\" (did you mean get?); \"kubectl tarn --help\" lists all\n" {
		t.Errorf("a mistake is answered by %q", got.err)
	}
	if got := r.run("get", "--help"); !strings.Contains(got.out, "Usage:\n  kubectl tarn get RESOURCES") || !strings.Contains(got.out, `"kubectl tarn options" lists`) {
		t.Errorf("the help of get is\n%s", got)
	}
}

func TestNames(t *testing.T) {
	for arg0, want := range map[string]string{
		"tarn": "tarn", "/usr/local/bin/tarn": "tarn", "./tarn.exe": "tarn", "tarn-1.2": "tarn",
		"kubectl-tarn": "kubectl tarn", "/x/kubectl-tarn.exe": "kubectl tarn", "/x/kubectl_complete-tarn": "kubectl tarn",
	} {
		if got := programName(arg0); got != want {
			t.Errorf("%s is called %q, want %q", arg0, got, want)
		}
	}
	if got := strings.Join(commandLine([]string{"/x/kubectl_complete-tarn", "get", "po"}), " "); got != "__complete get po" {
		t.Errorf("as kubectl's completion it runs %q", got)
	}
}

func TestVersion(t *testing.T) {
	r := newRig(t)
	if got := r.run("version"); got.code != 0 || !strings.HasPrefix(got.out, "tarn ") || !strings.Contains(got.out, "(go1.") {
		t.Errorf("version prints\n%s", got)
	}
	if got := r.run("version", "-o", "json"); got.code != 0 || !strings.Contains(got.out, `"go": "go1.`) {
		t.Errorf("version -o json prints\n%s", got)
	}
}
