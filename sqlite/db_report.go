package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// reportPrefix begins the names of reports, asidePrefix those of damaged files that
	// versions before format 4 kept.
	reportPrefix, asidePrefix = "damage-", fileName + ".damaged-"
	// maxReports is how many reports are kept: a disk that damages a file each hour must
	// not be filled by reports.
	maxReports = 3
	// reportTime is the time limit for the check of a damaged file.
	reportTime = 10 * time.Second
)

// writeReport writes a report beside a damaged file: the cause, and the findings of
// [Check]. It has names, and no content.
func writeReport(dir string, key []byte, cause error) (name string, err error) {
	var text strings.Builder
	now := time.Now().UTC()
	fmt.Fprintf(&text, "%s: the file was damaged and is removed: %v\n", now.Format(time.RFC3339), cause)
	for _, line := range examine(dir, key, reportTime) {
		fmt.Fprintln(&text, line)
	}
	name = filepath.Join(dir, reportPrefix+now.Format("20060102T150405.000")+".txt")
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		return "", err
	}
	return name, keepLatest(dir, reportPrefix, maxReports)
}

// removeAside removes the damaged files that older versions kept.
func removeAside(dir string) error { return keepLatest(dir, asidePrefix, 0) }

// keepLatest removes all but the latest files with a prefix, whose names sort by time.
func keepLatest(dir, prefix string, most int) error {
	entries, err := os.ReadDir(dir) // by name
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	var all []error
	for _, name := range names[:max(len(names)-most, 0)] {
		all = append(all, remove(filepath.Join(dir, name)))
	}
	return errors.Join(all...)
}
