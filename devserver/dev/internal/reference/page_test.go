package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/devserver/dev"
	"github.com/signalbox-dev/signalbox/internal/cli"
)

func TestReferencePageIsFresh(t *testing.T) {
	t.Parallel()
	committed, err := os.ReadFile("../../../../docs/reference/cli.md")
	require.NoError(t, err)
	require.Equal(t, commandPage(cli.New(dev.Main())), string(committed), "run: make generate")
}
