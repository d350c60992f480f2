package roster

import (
	"errors"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// ReportUnkept says that a factory with a client was to be kept on disk. Its
// constructor cannot return an error.
func ReportUnkept() {
	utilruntime.HandleError(errors.New("WithDisk has no effect on a factory that was made with a client, which does not say which server it is of: nothing is kept on disk; make the factory from a rest.Config"))
}
