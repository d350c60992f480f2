package web

import (
	"net/http"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/render"
)

// problemsAnswer has the current and past problems.
type problemsAnswer struct {
	// Problems are in order, newest first; those with an end are over.
	Problems []problem `json:"problems"`
	// Bad are the objects that could not be processed, at most a hundred of each table.
	Bad []badObject `json:"bad"`
}

type problem struct {
	Table string `json:"table"`
	// Cluster is empty if there is only one, or if it is about all.
	Cluster string `json:"cluster,omitempty"`
	What    string `json:"what"`
	Detail  string `json:"detail,omitempty"`
	Advice  string `json:"advice,omitempty"`
	Since   string `json:"since"`
	Until   string `json:"until,omitempty"`
	Count   int    `json:"count"`
}

type badObject struct {
	Table   string       `json:"table"`
	Key     tarn.Key     `json:"key,omitempty"`
	Version tarn.Version `json:"version,omitempty"`
	Error   string       `json:"error"`
	Since   string       `json:"since"`
}

// maxError bounds how much of an error is shown, which may be a server's answer.
const maxError = 4000

// problems answers /api/problems.
func (s *Site) problems(*http.Request) (any, *failure) {
	found := problemsAnswer{Problems: []problem{}, Bad: []badObject{}}
	for _, p := range s.mirror.Problems() {
		found.Problems = append(found.Problems, problem{
			Table: p.Table, Cluster: p.Cluster, What: p.What, Detail: unnamed(p.Table, p.Detail), Advice: p.Advice,
			Since: stamp(p.Since), Until: stamp(p.Until), Count: p.Count,
		})
	}
	for _, table := range s.mirror.Tables() {
		for _, bad := range table.Status().Health.Bad {
			b := badObject{Table: table.Resource().Name(), Key: bad.Key, Version: bad.Version, Since: stamp(bad.Since)}
			if bad.Err != nil {
				b.Error = render.CutNote(bad.Err.Error(), maxError)
			}
			found.Bad = append(found.Bad, b)
		}
	}
	return found, nil
}
