package fieldpath

import "slices"

// nearest returns the name with the smallest edit distance to name.
func nearest(name string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return slices.MinFunc(names, func(a, b string) int { return distance(name, a) - distance(name, b) })
}

// distance is the edit distance of two words. A letter in the other case counts
// half, so that nodename leads to nodeName.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = 2 * j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = 2 * (i + 1)
		for j := range len(b) {
			change := diagonal + cost(a[i], b[j])
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+2, row[j]+2)
		}
	}
	return row[len(b)]
}

func cost(a, b byte) int {
	switch {
	case a == b:
		return 0
	case a|0x20 == b|0x20:
		return 1
	}
	return 2
}
