package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// days matches the days at the start of a span: 7d, 1d12h.
var days = regexp.MustCompile(`^([0-9]{1,6})d(.*)$`)

// parseSpan parses a duration in Go's form, with days too: 90s, 24h, 7d.
func parseSpan(text string) (time.Duration, error) {
	whole, rest := time.Duration(0), text
	if parts := days.FindStringSubmatch(text); parts != nil {
		n, err := strconv.Atoi(parts[1])
		if err != nil || n > 100*366 {
			return 0, fmt.Errorf("%s is more than a hundred years", text)
		}
		whole, rest = time.Duration(n)*24*time.Hour, parts[2]
		if rest == "" {
			return whole, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 24h or 7d", text)
	}
	return whole + d, nil
}

// byteUnits are the units of sizes. All of them end with B or i, so that 20m can only be a
// time.
var byteUnits = map[string]int64{
	"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
}

var sizeText = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)([A-Za-z]+)$`)

// parseSize parses a number of bytes: 500MB, 20GB, 1.5GiB.
func parseSize(text string) (int64, error) {
	parts := sizeText.FindStringSubmatch(text)
	unit := int64(0)
	if parts != nil {
		for name, bytes := range byteUnits {
			if strings.EqualFold(name, parts[2]) {
				unit = bytes
			}
		}
	}
	if unit == 0 {
		return 0, fmt.Errorf("%q is not a size such as 500MB or 20GB", text)
	}
	n, err := strconv.ParseFloat(parts[1], 64)
	if n *= float64(unit); err != nil || n >= 1<<62 {
		return 0, fmt.Errorf("%s is larger than any disk", text)
	}
	return int64(n), nil
}
