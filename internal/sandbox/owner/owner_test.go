package owner_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/sandbox/owner"
)

func TestGone(t *testing.T) {
	t.Parallel()
	require.False(t, owner.Gone(owner.Name()))
	require.True(t, owner.Gone(strconv.Itoa(os.Getpid())+"-1"), "another process had its id")
	require.True(t, owner.Gone("999999999-1"))
	require.True(t, owner.Gone("text"))
}
