package payload_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/payload"
)

// store has the values of one run, by digest; err is the answer to every call if it is set.
type store struct {
	payload.Store

	name   string
	values map[string]string
	err    error
}

func (s *store) String() string { return s.name }

func (s *store) Put(_ context.Context, _, digest string, value []byte) error {
	s.values[digest] = string(value)
	return s.err
}

func (s *store) Get(_ context.Context, _, digest string) ([]byte, bool, error) {
	value, found := s.values[digest]
	return []byte(value), found && s.err == nil, s.err
}

func TestEarlierValuesAreReadAndNewOnesWrittenApart(t *testing.T) {
	t.Parallel()
	current := &store{name: "the folder", values: map[string]string{}}
	earlier := &store{name: "the database", values: map[string]string{"old": "before"}}
	s := payload.NewStores(current, earlier)
	require.Equal(t, []string{"the folder", "the database"}, s.Names())
	require.NoError(t, s.Put(t.Context(), "r1", "new", []byte("after")))
	require.NotContains(t, earlier.values, "new")
	for digest, want := range map[string]string{"old": "before", "new": "after"} {
		value, found, err := s.Get(t.Context(), "r1", digest)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, want, string(value))
	}
	_, found, err := s.Get(t.Context(), "r1", "never")
	require.NoError(t, err)
	require.False(t, found)

	// During an outage of the new store, old values are read, and no other is reported as missing.
	current.err = errors.New("it is away")
	value, found, err := s.Get(t.Context(), "r1", "old")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "before", string(value))
	_, _, err = s.Get(t.Context(), "r1", "new")
	require.ErrorContains(t, err, "it is away")
}

func TestPathsNameRuns(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"r1", "a/b", "..", "größe", "%41"} {
		path, err := payload.RunPath(id)
		require.NoError(t, err)
		require.Regexp(t, `^[0-9a-f]{2}/[A-Za-z0-9%_-]+$`, path)
		found, ok := payload.RunOf(path)
		require.True(t, ok, path)
		require.Equal(t, id, found)
	}
	for _, other := range []string{"", "82", "82/", "00/r1", "82/r1/d1", "82/r%31", ".new-1"} {
		_, ok := payload.RunOf(other)
		require.False(t, ok, "%q is not the path of a run", other)
	}
	for _, id := range []string{"", strings.Repeat("/", 81)} {
		_, err := payload.RunPath(id)
		require.Error(t, err)
	}
}
