package handler

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestTokenRoundTrip(t *testing.T) {
	t.Parallel()
	key, err := pageKey(&signalboxv1.ListRunsRequest{
		Filter: &signalboxv1.RunFilter{Statuses: []string{"failed"}}, PageSize: 10})
	require.NoError(t, err)
	same, err := pageKey(&signalboxv1.ListRunsRequest{
		Filter: &signalboxv1.RunFilter{Statuses: []string{"failed"}}, PageSize: 20, PageToken: "abc"})
	require.NoError(t, err)
	require.Equal(t, key, same, "size and token are no filters")

	at := run.Cursor{CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC), ID: "r"}
	token, err := encodeToken(at, key)
	require.NoError(t, err)
	got, err := decodeToken[run.Cursor](token, key)
	require.NoError(t, err)
	require.Equal(t, at, *got)

	first, err := decodeToken[run.Cursor]("", key)
	require.NoError(t, err)
	require.Nil(t, first)
}

func TestForeignTokensAreRefused(t *testing.T) {
	t.Parallel()
	runs, err := pageKey(&signalboxv1.ListRunsRequest{})
	require.NoError(t, err)
	token, err := encodeToken(int64(5), runs)
	require.NoError(t, err)
	steps, err := pageKey(&signalboxv1.ListStepsRequest{})
	require.NoError(t, err)
	filtered, err := pageKey(&signalboxv1.ListRunsRequest{Filter: &signalboxv1.RunFilter{Workflow: "a"}})
	require.NoError(t, err)
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for name, test := range map[string]struct{ token, key string }{
		"other filters":       {token, filtered},
		"other list":          {token, steps},
		"no base64":           {"%%%", runs},
		"no JSON":             {encode("nonsense"), runs},
		"no place":            {encode(`{"k":"` + runs + `"}`), runs},
		"place of other type": {encode(`{"k":"` + runs + `","c":"x"}`), runs},
		"endless":             {strings.Repeat("A", 5000), runs},
	} {
		_, err := decodeToken[int64](test.token, test.key)
		require.True(t, apperror.Is(err, apperror.InvalidPageToken), name)
		require.ErrorContains(t, err, "start again without one", name)
	}
}
