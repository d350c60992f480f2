package memory

import (
	"errors"
	"fmt"

	"github.com/tarnproject/tarn/fieldpath"
	"github.com/tarnproject/tarn/memory/query"
)

func exactLookup(index string, values []any) lookup {
	return lookup{index, func(functional bool, fields int) ([]span, error) {
		code, err := rowCode(functional, fields, values)
		switch {
		case err != nil:
			return nil, err
		case len(values) == 0:
			return nil, errors.New("no value to look up: pass one, or walk All")
		case functional:
			return []span{exactly(code)}, nil
		}
		return []span{query.PrefixSpan(code)}, nil
	}}
}

func prefixLookup(index, prefix string, values []any) lookup {
	return lookup{index, func(functional bool, fields int) ([]span, error) {
		if functional {
			if len(values) > 0 {
				return nil, errors.New("an index by function has only one value: nothing can come before the prefix")
			}
			return []span{query.PrefixSpan(prefix)}, nil
		}
		code, err := rowCode(false, fields-1, values)
		if err != nil {
			return nil, err
		}
		return []span{query.PrefixSpan(string(fieldpath.AppendOrderedPrefix([]byte(code), prefix)))}, nil
	}}
}

func rangeLookup(index string, from, to []any) lookup {
	return lookup{index, func(functional bool, fields int) ([]span, error) {
		low, err := rowCode(functional, fields, from)
		if err != nil {
			return nil, err
		}
		high, err := rowCode(functional, fields, to)
		if err != nil {
			return nil, err
		}
		if high != "" && high <= low {
			return []span{{From: high, To: high}}, nil // an empty span
		}
		return []span{{From: low, To: high}}, nil
	}}
}

// rowCode is the code of a row of values in an index.
func rowCode(functional bool, fields int, values []any) (string, error) {
	if len(values) > fields {
		return "", fmt.Errorf("%d values for %d fields: leave out the last ones", len(values), fields)
	}
	var code []byte
	for _, value := range values {
		if text, ok := value.(string); functional {
			if !ok {
				return "", fmt.Errorf("a value is %T: an index by function has strings", value)
			}
			return text, nil
		}
		v, err := fieldpath.ValueOf(value)
		if err != nil {
			return "", err
		}
		code = v.AppendOrdered(code)
	}
	return string(code), nil
}
