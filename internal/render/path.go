package render

import (
	"regexp"
	"strings"
)

// Path leads from an object to one of its fields, in the notation of package
// fieldpath; an element of a list may have a name instead of a number.
//
// It is a linked list that becomes text only when it is shown: building the text of
// 100,000 paths with 9,000 steps each would take gigabytes. The nil path is the
// object itself.
type Path struct {
	parent *Path
	step   string
	// element says that the step leads to an element of a list.
	element bool
	depth   int
	// text caches String, for the paths below this one.
	text string
}

// Field is the path to a field of the object at p.
func (p *Path) Field(name string) *Path { return &Path{parent: p, step: name, depth: p.Depth() + 1} }

// Element is the path to an element of the list at p.
func (p *Path) Element(name string) *Path {
	return &Path{parent: p, step: name, element: true, depth: p.Depth() + 1}
}

// Depth is the number of steps.
func (p *Path) Depth() int {
	if p == nil {
		return 0
	}
	return p.depth
}

// is compares with the names of fields.
func (p *Path) is(names ...string) bool {
	if p.Depth() != len(names) {
		return false
	}
	for i := len(names) - 1; i >= 0; i-- {
		if p.element || p.step != names[i] {
			return false
		}
		p = p.parent
	}
	return true
}

var (
	simpleName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	escapes    = strings.NewReplacer(`\`, `\\`, `'`, `\'`)
)

// String is the path as text, cut if it is longer than [MaxPath].
func (p *Path) String() string {
	if p == nil || p.text != "" {
		return p.known()
	}
	before := p.parent.String()
	if len(before) > MaxPath {
		p.text = before
		return before
	}
	name := Cut(p.step, MaxPath)
	switch {
	case p.element:
		name = "[" + name + "]"
	case !simpleName.MatchString(name):
		name = "['" + escapes.Replace(name) + "']"
	case before != "":
		name = "." + name
	}
	p.text = Cut(before+name, MaxPath)
	return p.text
}

func (p *Path) known() string {
	if p == nil {
		return ""
	}
	return p.text
}
