package render

// Limits bound the output for one object.
type Limits struct {
	// Lines and Bytes bound the whole output, paths and indentation included; Value
	// bounds the value of one line.
	Lines, Bytes, Value int
}

// Line is one line of an object's YAML with the path of its field, so that a view can mark
// a change of the field.
type Line struct {
	Path string `json:"path"`
	// Lead is indentation and dashes, Key has no colon.
	Lead  string `json:"lead,omitempty"`
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

func (l Line) String() string { return lineText(l.Lead, l.Key, l.Value) }

func lineText(lead, key, value string) string {
	switch {
	case key == "":
		return lead + value
	case value == "":
		return lead + key + ":"
	}
	return lead + key + ": " + value
}

// Outline is the bounded output for an object.
type Outline struct {
	Lines []Line
	// More is the number of lines left out, Shortened that of cut values.
	More, Shortened int
}

// Whole reports whether nothing is left out.
func (o Outline) Whole() bool { return o.More+o.Shortened == 0 }

// Lines writes an object as YAML within limits.
func Lines(object map[string]any, limits Limits) Outline {
	w := &boundedLines{limits: limits}
	o := outline{to: w}
	o.mapping(object, nil, "", "")
	w.More = o.more
	return w.Outline
}

// boundedLines keeps lines until there are enough.
type boundedLines struct {
	Outline
	limits Limits
	bytes  int
	spent  bool
}

func (w *boundedLines) full() bool { return w.spent }

func (w *boundedLines) inline(_ any, depth int) bool { return depth >= MaxDepth }

// as formats one byte more than is shown, to detect a value that is too long.
func (w *boundedLines) as(value any) string {
	f := flow{most: w.limits.Value + 1}
	f.value(value)
	return f.String()
}

func (w *boundedLines) line(path *Path, lead, key, value string) {
	l := Line{path.String(), lead, Cut(key, MaxPath), value}
	if len(value) > w.limits.Value {
		l.Value = Cut(value, w.limits.Value)
		w.Shortened++
	}
	w.bytes += len(l.Path) + len(l.Lead) + len(l.Key) + len(l.Value)
	if w.bytes > w.limits.Bytes && len(w.Lines) > 0 {
		w.spent = true
		w.Lines, w.Shortened = append(w.Lines, Line{Path: l.Path, Lead: l.Lead, Value: "…"}), w.Shortened+1
		return
	}
	w.Lines = append(w.Lines, l)
	w.spent = len(w.Lines) >= w.limits.Lines
}
