package dsl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
)

func TestUsedProgramsHaveKeysAndNames(t *testing.T) {
	t.Parallel()
	for key, tt := range map[string]struct {
		used dsl.UsedProgram
		name string
	}{
		"python":    {dsl.UsedProgram{Program: dsl.ProgramScript, Language: dsl.Python}, "scripts in python"},
		"shell":     {dsl.UsedProgram{Program: dsl.ProgramShell}, "shell commands"},
		"container": {dsl.UsedProgram{Program: dsl.ProgramContainer}, "containers"},
	} {
		require.Equal(t, key, tt.used.Key())
		require.Equal(t, tt.name, tt.used.Name())
	}
}
