package fieldpath

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// A Path says where in an object some values are. [Parse] makes it. Any number of
// goroutines may use it. It keeps the compiled program of each Go type that it
// reads.
//
// Why the programs stay with the path and not in a table of the package: paths come
// from users' queries, and a table by text would keep all of them for ever.
type Path struct {
	steps []step
	text  string
	multi bool

	// latest is the program of the last type: most paths read only one type.
	latest   atomic.Pointer[program]
	programs sync.Map // reflect.Type to *program
}

// step is one move down: to a name, to all elements, or, if the name is a number in
// brackets and the value is a list, to one element.
type step struct {
	name string
	// index is name as the index of an element, -1 if it is not a number.
	index int
	all   bool
}

// MustParse is [Parse] for paths in the source code. It panics where Parse fails.
func MustParse(text string) *Path {
	p, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return p
}

// String is the path in its shortest form, which Parse reads as the same path.
func (p *Path) String() string { return p.text }

// Multi says whether one object can have several values here, because the path
// has a [*].
func (p *Path) Multi() bool { return p.multi }

func newPath(steps []step) *Path {
	p := &Path{steps: steps, text: join(steps)}
	for _, s := range steps {
		p.multi = p.multi || s.all
	}
	return p
}

// join writes steps as a path.
func join(steps []step) string {
	var b strings.Builder
	for i, s := range steps {
		switch {
		case s.all:
			b.WriteString("[*]")
		case s.index >= 0:
			b.WriteString("[" + s.name + "]")
		case plainName(s.name):
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.name)
		case plainKey(s.name):
			b.WriteString("[" + s.name + "]")
		default:
			b.WriteString("['" + quoting.Replace(s.name) + "']")
		}
	}
	return b.String()
}

var quoting = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// plainName says whether a name can be written between dots.
func plainName(name string) bool {
	return name != "" && !strings.ContainsAny(name, " \t\r\n.[]'\"\\*(),=!<>")
}

// plainKey says whether a name can be written in brackets without quotes. A number
// cannot, because it would be read as an element.
func plainKey(name string) bool {
	return name != "" && !strings.ContainsAny(name, " \t\r\n[]'\"\\*(),=!<>") && elementOf(name) < 0
}

// elementOf is the list index that a name in brackets stands for, -1 for none.
func elementOf(name string) int {
	n, err := strconv.Atoi(name)
	if err != nil || n < 0 || strconv.Itoa(n) != name {
		return -1
	}
	return n
}
