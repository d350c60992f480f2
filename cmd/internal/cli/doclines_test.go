package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is where the repository begins, as seen from here.
const root = "../../.."

// docLine is a command line in a document.
type docLine struct {
	where string // file:line
	text  string
	// mention is a command in the middle of a sentence, which may leave out what it needs to
	// run.
	mention bool
}

// docLines collects the command lines of the documents.
func docLines() ([]docLine, error) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	files = append([]string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")}, files...)
	var all []docLine
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name, _ := filepath.Rel(root, file)
		all = append(all, commandLines(name, string(text))...)
	}
	return all, nil
}

var (
	// commandWords begin a line that is meant to be typed. Indented text may also be
	// a drawing or some Go; in a block that says it is for a shell, every line counts.
	commandWords = regexp.MustCompile(`^(\w+=\S* )*(\w+=\$\(.*|tarn|(\./)?bin/\S+|kubectl|make|go (test|run|build|install|vet|get|tool|generate|mod)|cd|chmod|curl|docker|echo|export|git|helm|ln|openssl|source|sudo|apt(-get)?|brew)( |$)`)
	// mentioned are commands within a sentence.
	mentioned   = regexp.MustCompile("`((?:kubectl )?tarn [^`]+|make [a-z][^`]*|go (?:test|run) [^`]+)`")
	shellFences = []string{"sh", "bash", "shell", "console"}
)

// commandLines finds the commands in a document: lines in shell blocks, indented
// lines from one on that begins as a command does, and mentions.
func commandLines(file, text string) []docLine {
	var found []docLine
	fence, fenced, typed := "", false, false
	joined := ""
	for i, line := range strings.Split(text, "\n") {
		where := fmt.Sprintf("%s:%d", file, i+1)
		trimmed := strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if after, ok := strings.CutPrefix(trimmed, "```"); ok {
			fence, fenced, typed = after, !fenced, false
			typed = fenced && slices.Contains(shellFences, fence)
			continue
		}
		code := fenced && fence == "" || !fenced && strings.HasPrefix(line, "    ")
		switch {
		case code:
			typed = typed || commandWords.MatchString(trimmed)
		case !fenced:
			typed = false
			for _, span := range mentioned.FindAllStringSubmatch(line, -1) {
				found = append(found, docLine{where, span[1], true})
			}
		}
		if !typed || trimmed == "" || joined == "" && trimmed[0] == '#' {
			continue
		}
		before, goesOn := strings.CutSuffix(trimmed, `\`)
		if joined += before; !goesOn {
			found = append(found, docLine{where, joined, false})
			joined = ""
		}
	}
	return found
}

// shellWords reads a command line as a shell does, as far as documents need it:
// quotes, comments, $NAME and $(command), which expand answers. Operators (| > >>
// & && ;) are words of their own, and so are those in quotes, which none needs.
func shellWords(line string, expand func(name string) (string, error)) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, byte(0)
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, inWord = c, true
		case c == '$' && quote != '\'':
			name, length := variableAt(line[i+1:])
			if length == 0 {
				return nil, fmt.Errorf("the $ in %q is none that this test knows", line)
			}
			value, err := expand(name)
			if err != nil {
				return nil, err
			}
			word.WriteString(value)
			inWord = true
			i += length
		case quote != 0:
			word.WriteByte(c)
		case c == '#' && !inWord:
			end()
			return words, nil
		case c == ' ' || c == '\t':
			end()
		case strings.IndexByte("|>&;<", c) >= 0:
			end()
			if i+1 < len(line) && line[i+1] == c {
				i++
				words = append(words, string([]byte{c, c}))
			} else {
				words = append(words, string(c))
			}
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	end()
	return words, nil
}

// variableAt reads what follows a $: a name, or a command in parentheses with
// which the name then begins.
func variableAt(text string) (name string, length int) {
	if !strings.HasPrefix(text, "(") {
		name = regexp.MustCompile(`^\w+`).FindString(text)
		return name, len(name)
	}
	depth := 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return text[:i], i + 1
			}
		}
	}
	return "", 0
}

// Every attack that docs/testing.md lists names tests that exist, in the packages that
// it names.
func TestAttacksAreTested(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "docs", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(content), "\n## Attacks\n")
	text, _, _ = strings.Cut(text, "\n## ")
	named := regexp.MustCompile("((?:`(?:Test|Fuzz)\\w+`(?:, )?)+) \\(((?:`[\\w/]+`(?:, )?)+)\\)")
	quoted := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.Lines(text) {
		_, tests, ok := strings.Cut(strings.Trim(line, "| \n"), " | ")
		if !ok || !strings.Contains(tests, "`") {
			continue
		}
		rows++
		groups := named.FindAllStringSubmatch(tests, -1)
		if len(groups) == 0 {
			t.Errorf("no test with its package in %q", tests)
		}
		for _, group := range groups {
			for _, folder := range quoted.FindAllStringSubmatch(group[2], -1) {
				files, err := filepath.Glob(filepath.Join(root, folder[1], "*_test.go"))
				if err != nil || len(files) == 0 {
					t.Errorf("%s has no tests: %v", folder[1], err)
				}
				code := ""
				for _, file := range files {
					text, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					code += string(text)
				}
				for _, test := range quoted.FindAllStringSubmatch(group[1], -1) {
					if !strings.Contains(code, "func "+test[1]+"(") {
						t.Errorf("there is no %s in %s", test[1], folder[1])
					}
				}
			}
		}
	}
	if rows < 10 {
		t.Errorf("only %d attacks were found", rows)
	}
}
