package app

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/project"
)

// withSteps is a store in which all projects have the same step limit.
type withSteps int64

func (s withSteps) GetProject(_ context.Context, name string) (project.Project, error) {
	if name == "unknown" {
		return project.Project{}, errors.New("no such project")
	}
	return project.Project{Name: name, Settings: project.Settings{MaxSteps: int64(s)}}, nil
}

func TestProjectLowersTheStepLimit(t *testing.T) {
	t.Parallel()
	for own, want := range map[withSteps]int64{0: 1000, 200: 200, 1000: 1000, 5000: 1000} {
		got, err := stepLimit(own, 1000)(t.Context(), "p")
		require.NoError(t, err)
		require.Equal(t, want, got, "project limit %d", own)
	}
	_, err := stepLimit(withSteps(0), 1000)(t.Context(), "unknown")
	require.Error(t, err)
}
