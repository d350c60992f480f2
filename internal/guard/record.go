package guard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// Block is an object in read-only memory, as it is written to the record.
type Block struct {
	Start, End uintptr
	// Object is its type and key.
	Object string
	Parts  []Part
}

// Part is a piece of an object's memory.
type Part struct {
	At, Size int
	Field    string `json:",omitempty"`
	// Type is what the part is, or its elements if Stride is not zero. No other type of
	// the process has the same name: see [record.newLayout].
	Type   string
	Stride int `json:",omitempty"`
}

// Layout says where the fields of a type are, if it is a struct.
type Layout struct {
	Type   string
	Fields []Part
}

// line is one line of a record: either of both.
type line struct {
	Block  *Block  `json:",omitempty"`
	Layout *Layout `json:",omitempty"`
}

// record is what is known of frozen objects, in memory and in a file. The file outlives a
// process that ends by a fault.
type record struct {
	mu      sync.Mutex
	file    *os.File
	blocks  []Block
	names   map[reflect.Type]string
	layouts map[string]Layout // of all types in names
}

// opened is the record of the process.
var opened struct {
	sync.Mutex
	record *record
}

// filePrefix is how the names of records begin. They are in the directory for temporary
// files.
const filePrefix = "tarn-guard-"

func openRecord() (*record, error) {
	opened.Lock()
	defer opened.Unlock()
	if opened.record != nil {
		return opened.record, nil
	}
	file, err := os.CreateTemp("", fmt.Sprintf("%s%d-*.json", filePrefix, os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("guard: the record of objects cannot be written: %w", err)
	}
	removeOld()
	fmt.Fprintf(os.Stderr, "tarn: guard mode: objects of caches are read-only, and a write to one ends the process at the line that writes.\n"+
		"tarn: to find out which object and field it was: tarn guard explain --file %s ADDRESS\n", file.Name())
	opened.record = &record{file: file, names: map[reflect.Type]string{}, layouts: map[string]Layout{}}
	return opened.record, nil
}

// removeOld removes records that nobody will ask for.
func removeOld() {
	for _, path := range records() {
		if time.Since(time.Unix(0, written(path))) > 24*time.Hour {
			_ = os.Remove(path) // it may be another user's
		}
	}
}

func records() []string {
	names, _ := filepath.Glob(filepath.Join(os.TempDir(), filePrefix+"*.json")) // the pattern is right
	return names
}

// add records an object.
func (r *record) add(object string, memory []byte, parts []part) error {
	start := uintptr(unsafe.Pointer(&memory[0]))
	block := Block{Start: start, End: start + uintptr(len(memory)), Object: object}
	var lines []byte
	write := func(l line) error {
		raw, err := json.Marshal(l)
		lines = append(append(lines, raw...), '\n')
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range parts {
		name, known := r.names[p.t]
		if !known {
			layout := r.newLayout(p.t)
			name = layout.Type
			if err := write(line{Layout: &layout}); err != nil {
				return err
			}
		}
		block.Parts = append(block.Parts, Part{At: p.at, Size: p.size, Field: p.field, Type: name, Stride: p.stride})
	}
	r.blocks = append(r.blocks, block)
	if err := write(line{Block: &block}); err != nil {
		return err
	}
	_, err := r.file.Write(lines)
	return err
}

// newLayout describes a type that was not seen before. A type of another package may have
// the same name, such as v1.Event, so the second one gets a number. The caller holds the lock.
func (r *record) newLayout(t reflect.Type) Layout {
	layout := Layout{Type: t.String()}
	for n := 2; ; n++ {
		if _, taken := r.layouts[layout.Type]; !taken {
			break
		}
		layout.Type = fmt.Sprintf("%s#%d", t, n)
	}
	if t.Kind() == reflect.Struct {
		layout.Fields = layoutOf("", t, 0)
	}
	r.names[t], r.layouts[layout.Type] = layout.Type, layout
	return layout
}

// layoutOf lists the fields of a struct, those of structs within it included.
func layoutOf(under string, t reflect.Type, at int) (fields []Part) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, offset := fieldUnder(under, f), at+int(f.Offset)
		if f.Type.Kind() == reflect.Struct && f.Type.NumField() > 0 && f.Type.Field(0).IsExported() {
			fields = append(fields, layoutOf(name, f.Type, offset)...)
			continue
		}
		fields = append(fields, Part{At: offset, Size: int(f.Type.Size()), Field: name, Type: f.Type.String()})
	}
	return fields
}

// fieldUnder is the path of a field, by its name in JSON.
func fieldUnder(path string, f reflect.StructField) string {
	name, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case name == "" && (f.Anonymous || tagged && strings.Contains(options, "inline")):
		return path
	case name == "" || name == "-":
		name = f.Name
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// Explain says which object and field an address of this process belongs to; false if it
// is not that of a frozen object.
func Explain(address uintptr) (string, bool) {
	opened.Lock()
	r := opened.record
	opened.Unlock()
	if r == nil {
		return "", false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return explain(address, r.blocks, r.layouts)
}

func explain(address uintptr, blocks []Block, layouts map[string]Layout) (string, bool) {
	i := slices.IndexFunc(blocks, func(b Block) bool { return b.Start <= address && address < b.End })
	if i < 0 {
		return "", false
	}
	b := blocks[i]
	at := int(address - b.Start)
	for _, p := range b.Parts {
		if at < p.At || at >= p.At+p.Size {
			continue
		}
		within, field := at-p.At, p.Field
		if p.Stride > 0 {
			field = fmt.Sprintf("%s[%d]", field, within/p.Stride)
			within %= p.Stride
		}
		for _, f := range layouts[p.Type].Fields {
			if within >= f.At && within < f.At+f.Size {
				field = strings.TrimPrefix(field+"."+f.Field, ".")
				break
			}
		}
		return fmt.Sprintf("%s of %s", field, b.Object), true
	}
	return b.Object, true
}

// ExplainFile is Explain for the address of a process that has ended, by the record that
// it wrote.
func ExplainFile(path string, address uintptr) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var blocks []Block
	layouts := map[string]Layout{}
	for decoder := json.NewDecoder(file); decoder.More(); {
		var l line
		if err := decoder.Decode(&l); err != nil {
			break // the process ended while it wrote this line
		}
		if l.Block != nil {
			blocks = append(blocks, *l.Block)
		}
		if l.Layout != nil {
			layouts[l.Layout.Type] = *l.Layout
		}
	}
	text, ok := explain(address, blocks, layouts)
	if !ok {
		return "", fmt.Errorf("%#x is not the address of an object that %s knows", address, path)
	}
	return text, nil
}

// LastFile is the newest record in the directory for temporary files.
func LastFile() (string, error) {
	newest := slices.MaxFunc(append(records(), ""), func(a, b string) int { return cmp.Compare(written(a), written(b)) })
	if newest == "" {
		return "", fmt.Errorf("there is no record of a process in guard mode in %s: name its file", os.TempDir())
	}
	return newest, nil
}

func written(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}
