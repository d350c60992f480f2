package cache

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"

	upstream "k8s.io/client-go/tools/cache"
)

// handlerName names a handler in logs, by what its author would search the source
// for: the type that implements it or, for handlers made of functions, where the
// functions are defined. If that is one place the place is named, else all of the
// functions are, joined by "+".
func handlerName(handler upstream.ResourceEventHandler) string {
	var described any = handler
	if wrapper, ok := handler.(interface{ behind() any }); ok {
		described = wrapper.behind()
	}
	name := ""
	switch h := described.(type) {
	case nil:
	case ResourceEventHandlerFuncs:
		name = functionsName(h.AddFunc, h.UpdateFunc, h.DeleteFunc)
	case *ResourceEventHandlerFuncs:
		if h != nil {
			name = functionsName(h.AddFunc, h.UpdateFunc, h.DeleteFunc)
		}
	default:
		name = typeName(reflect.ValueOf(h))
	}
	if name == "" {
		return fmt.Sprintf("%T", described)
	}
	return name
}

// typeName is empty for types without a name, and for nil pointers, where the
// star in %T tells the reader more.
func typeName(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	t := v.Type()
	if t.Name() == "" || t.PkgPath() == "" {
		return t.Name()
	}
	return t.PkgPath() + "." + t.Name()
}

func functionsName(functions ...any) string {
	var names, places []string
	for _, function := range functions {
		code := runtime.FuncForPC(reflect.ValueOf(function).Pointer())
		if code == nil {
			continue // a nil function: none was given
		}
		name := code.Name()
		place := name
		if dot := strings.LastIndexByte(name, '.'); dot > 0 {
			place = name[:dot]
		}
		names = append(names, name)
		if !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	if len(places) == 1 {
		return places[0]
	}
	return strings.Join(names, "+")
}
