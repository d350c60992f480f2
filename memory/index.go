package memory

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/tarnproject/tarn/fieldpath"
)

// IndexError says that an index function failed for an object. That index does not
// find the object until it is written again. The object is in the store and in its
// other indexes.
type IndexError struct {
	Index string
	// Err is what the function returned or panicked with.
	Err error
}

func (e *IndexError) Error() string {
	return fmt.Sprintf("index %q: %v; the object is stored, but this index does not find it: make the index function accept it", e.Index, e.Err)
}

func (e *IndexError) Unwrap() error { return e.Err }

// An Index says by which values objects are found. [IndexFunc] and [IndexPath] make
// one, [Store.AddIndex] adds it.
type Index[T any] struct {
	function func(T) ([]string, error)
	paths    []*fieldpath.Path
	err      error
}

// IndexFunc finds objects by the strings that a function returns for them, any
// number. The function is called during a write; it must not write to the store,
// and should return the same for the same object each time.
func IndexFunc[T any](function func(T) ([]string, error)) Index[T] {
	if function == nil {
		return Index[T]{err: errors.New("has no function: give one, or leave the name out")}
	}
	return Index[T]{function: function}
}

// IndexPath finds objects by the value of a field, or of several fields in this
// order, see [fieldpath.Parse]. One of the paths may have a [*]: the object is then
// found by each of the values. An object with none of the fields is not in the
// index.
//
// Queries choose such an index by themselves.
func IndexPath[T any](paths ...string) Index[T] {
	x := Index[T]{}
	multi := 0
	for _, text := range paths {
		path, err := fieldpath.Parse(text)
		if err == nil {
			err = path.Check(reflect.TypeFor[T]())
		}
		if err != nil {
			return Index[T]{err: fmt.Errorf("cannot be made: %w", err)}
		}
		if path.Multi() {
			multi++
		}
		x.paths = append(x.paths, path)
	}
	switch {
	case len(paths) == 0:
		x.err = errors.New("has no field path: name at least one")
	case multi > 1:
		x.err = fmt.Errorf("has more than one path with a [*] in %q: an object would have an entry for every pair of their values; make two indexes", paths)
	}
	return x
}

// index is an Index in a store.
type index[T any] struct {
	Index[T]
	name string
	// slot is where cells remember their term.
	slot int
	// watchers wait for changes under values.
	watchers watchers

	// The writer reuses these for the next object.
	values []string
	fields []fieldpath.Value
	code   []byte
}

// valuesOf returns the values of an object, in order and each once, valid until the
// next call. A panic is an error like any other.
func (x *index[T]) valuesOf(object T) (values []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			values = nil
			if cause, ok := r.(error); ok {
				err = fmt.Errorf("the index function panicked: %w", cause)
			} else {
				err = fmt.Errorf("the index function panicked: %v", r)
			}
		}
	}()
	if x.function == nil {
		return x.codesOf(object)
	}
	values, err = x.function(object)
	if err != nil {
		return nil, err
	}
	if len(values) > 1 { // the slice may be the object's own
		values = slices.Compact(slices.Sorted(slices.Values(values)))
	}
	return values, nil
}

// codesOf returns the ordered codes of the values at the paths.
func (x *index[T]) codesOf(object T) ([]string, error) {
	x.code, x.values = x.code[:0], x.values[:0]
	var lead []byte // the values before the path with several values
	var several []fieldpath.Value
	any := false
	var wrong error
	for _, path := range x.paths {
		fields, err := path.Append(x.fields[:0], object)
		x.fields = fields
		if err == nil && len(fields) > 0 {
			fields = slices.DeleteFunc(fields, func(v fieldpath.Value) bool { return v.Kind() == fieldpath.Composite })
			if len(fields) == 0 {
				err = fmt.Errorf("%s is an object or a list, which has no order: name a field in it", path)
			}
		}
		if err != nil && wrong == nil {
			wrong = err
		}
		any = any || len(fields) > 0
		switch {
		case len(fields) > 1:
			several = slices.Clone(fields)
			lead, x.code = x.code, nil
		case len(fields) == 1:
			x.code = fields[0].AppendOrdered(x.code)
		default:
			x.code = fieldpath.Value{}.AppendOrdered(x.code)
		}
	}
	if !any {
		return nil, wrong
	}
	if several == nil {
		x.values = append(x.values, unsafe.String(unsafe.SliceData(x.code), len(x.code)))
		return x.values, nil
	}
	for _, v := range several {
		code := v.AppendOrdered(slices.Clone(lead))
		x.values = append(x.values, string(append(code, x.code...)))
	}
	slices.Sort(x.values)
	x.values = slices.Compact(x.values)
	return x.values, nil
}

// keepAll returns the result of valuesOf so that it outlives the next call. Codes are in
// a buffer that is reused.
func (x *index[T]) keepAll(values []string) []string {
	if x.function != nil {
		return values
	}
	kept := make([]string, len(values))
	for i, value := range values {
		kept[i] = strings.Clone(value)
	}
	return kept
}

// text is a value for people: the fields of a code with commas in between.
func (x *index[T]) text(value string) string {
	if x.function != nil {
		return value
	}
	var parts []string
	for value != "" {
		v, rest, err := fieldpath.ReadOrdered(value)
		if err != nil {
			break
		}
		parts = append(parts, v.String())
		value = rest
	}
	return strings.Join(parts, ",")
}

// texts returns the values for client code that knows only strings.
func (x *index[T]) texts(object T) ([]string, error) {
	own := index[T]{Index: x.Index} // not the writer's buffers
	values, err := own.valuesOf(object)
	if err != nil || x.function != nil {
		return values, err
	}
	out := make([]string, len(values))
	for i, value := range values {
		out[i] = x.text(value)
	}
	return out, nil
}
