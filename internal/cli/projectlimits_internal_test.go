package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is printed is what the flag reads.
func TestProgramLimitsAreReadAsTheyArePrinted(t *testing.T) {
	t.Parallel()
	const all = "memory=64MiB,processes=16,processors=0.5,disk=8MiB,output=64KiB,time=1m30s,network=guarded"
	limits, err := parseProgramLimits(strings.Split(all, ","))
	require.NoError(t, err)
	require.Equal(t, all, programLimits(limits))
	limits, err = parseProgramLimits([]string{runnerLimits})
	require.NoError(t, err)
	require.Equal(t, "those of the runner", programLimits(limits))
	for given, want := range map[string]string{
		"memory":                  "memory: ",
		"memory=0":                "0 is no limit",
		"disk=many":               "is not a size",
		"processes=0":             "not a number from 1 on",
		"processors=-1":           "not a number above 0",
		"processors=NaN":          "not a number above 0",
		"time=5":                  "not a duration",
		"network=":                "it is empty",
		"files=3":                 "one of memory, processes",
		"memory=9MiB,memory=8MiB": "given twice",
		"none,memory=8MiB":        "use NAME=VALUE",
	} {
		_, err := parseProgramLimits(strings.Split(given, ","))
		require.ErrorContains(t, err, want, given)
	}
}
