package story

import (
	"errors"

	"github.com/tarnproject/tarn"
)

// errorNames are the errors of the engine, by the names that stories have for
// them.
var errorNames = map[error]string{
	tarn.ErrRewound:      "rewound",
	tarn.ErrSilent:       "silent",
	tarn.ErrNoInitialEnd: "no end",
	tarn.ErrNoList:       "no list",
	tarn.ErrShortWatch:   "very short watch",
	tarn.ErrOtherSource:  "other source",
}

// ErrorName gives the name that stories have for an error of the engine, empty if
// stories have no name for it.
func ErrorName(err error) string {
	for known, name := range errorNames {
		if errors.Is(err, known) {
			return name
		}
	}
	return ""
}
