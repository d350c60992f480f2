package cache

import (
	"fmt"
	"runtime/debug"
)

// transformed returns the transform of an object, the object itself if there is no
// transform. A panic of the transform is an error like any other: it concerns this
// object only.
func transformed(transform TransformFunc, obj any) (result any, err error) {
	if transform == nil {
		return obj, nil
	}
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("the transform panicked on a %T: %v\n%s", obj, p, debug.Stack())
		}
	}()
	return transform(obj)
}
