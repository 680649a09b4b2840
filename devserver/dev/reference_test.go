package dev_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/devserver/dev"
	"github.com/signalbox-dev/signalbox/internal/cli"
)

func TestReferencePageIsFresh(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/cli.md")
	require.NoError(t, err)
	require.Equal(t, cli.Reference(cli.New(dev.Main())), string(page), "run: make generate")
}
