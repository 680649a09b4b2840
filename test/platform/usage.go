package platform

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Memory returns the resident memory of the process in MB, or zero where the system does not report it.
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

// CPU returns the processor time that the process has used so far, or zero where the system does not report it.
func (p *Process) CPU(t T) time.Duration {
	t.Helper()
	return processorTime(t, p.PID())
}

// OwnCPU is [Process.CPU] of the program that calls it.
func OwnCPU(t T) time.Duration {
	t.Helper()
	return processorTime(t, os.Getpid())
}

func processorTime(t T, pid int) time.Duration {
	t.Helper()
	const (
		tick  = 10 * time.Millisecond // on every Linux that Go supports
		user  = 11                    // fields after the name, which ends with the last parenthesis
		count = 2
	)
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	var total time.Duration
	text := string(data)
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	for _, field := range fields[user : user+count] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("read the processor time of process %d: %v", pid, err)
		}
		total += time.Duration(n) * tick
	}
	return total
}
