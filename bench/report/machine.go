package report

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine is what figures were measured on.
type Machine struct {
	CPU    string
	Cores  int
	Memory string `json:",omitempty"`
	System string
	Go     string
}

// ThisMachine describes the machine that the program runs on, as far as the system
// reports it.
func ThisMachine() Machine {
	return Machine{
		CPU:    valueOf("/proc/cpuinfo", "model name", runtime.GOARCH),
		Cores:  runtime.NumCPU(),
		Memory: valueOf("/proc/meminfo", "MemTotal", ""),
		System: runtime.GOOS + "/" + runtime.GOARCH,
		Go:     runtime.Version(),
	}
}

// valueOf finds "name : value" in a file of /proc.
func valueOf(path, name, otherwise string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return otherwise
	}
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return otherwise
}

// MemorySize is the machine's memory in GiB.
func (m Machine) MemorySize() string {
	var kilobytes float64
	if _, err := fmt.Sscanf(m.Memory, "%f kB", &kilobytes); err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%.0f GiB", kilobytes/(1<<20))
}

func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s, %s", m.CPU, m.Cores, m.System, m.Go)
	if m.Memory != "" {
		s += ", " + m.Memory + " of memory"
	}
	return s
}
