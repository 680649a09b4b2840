package platform

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Memory is what the process holds of the machine's memory, in MB; zero where the system does not tell.
func (p *Process) Memory(t T) float64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatalf("read the memory of %s: %v", p.Name, err)
			}
			return float64(kb) / 1024
		}
	}
	return 0
}

// CPU is the processor time that the process has used so far; zero where the system does not tell.
func (p *Process) CPU(t T) time.Duration {
	t.Helper()
	const (
		tick  = 10 * time.Millisecond // of every Linux that Go runs on
		user  = 11                    // fields after the name, which ends with the last parenthesis
		count = 2
	)
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0
	}
	var total time.Duration
	text := string(data)
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	for _, field := range fields[user : user+count] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("read the processor time of %s: %v", p.Name, err)
		}
		total += time.Duration(n) * tick
	}
	return total
}
