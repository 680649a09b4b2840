package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/annotation"
)

func testOutages(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	list := func(seen, to int, limit int) []annotation.Outage {
		t.Helper()
		found, err := s.Annotations().ListOutages(ctx, at(seen), at(to), limit)
		require.NoError(t, err)
		return found
	}
	require.Empty(t, list(0, 100, 10))
	first := annotation.Outage{Server: "a", Since: at(10), Kind: "hung", SeenAt: at(12)}
	second := annotation.Outage{Server: "b", Since: at(11), SeenAt: at(15), EndedAt: at(15)}
	require.NoError(t, s.Annotations().WriteOutages(ctx, []annotation.Outage{first, second}))
	require.Equal(t, []annotation.Outage{second, first}, list(0, 100, 10), "newest first")
	require.Equal(t, []annotation.Outage{second}, list(0, 100, 1))
	require.Equal(t, []annotation.Outage{second}, list(13, 100, 10))
	require.Equal(t, []annotation.Outage{first}, list(0, 11, 10))

	first.Kind, first.SeenAt, first.EndedAt = "unreachable", at(20), at(20)
	require.NoError(t, s.Annotations().WriteOutages(ctx, []annotation.Outage{first}))
	require.Equal(t, []annotation.Outage{second, first}, list(0, 100, 10), "the same outage is updated")

	deleted, err := s.DeleteOutages(ctx, at(20), 10)
	require.NoError(t, err)
	require.EqualValues(t, 1, deleted)
	require.Equal(t, []annotation.Outage{first}, list(0, 100, 10))
	deleted, err = s.DeleteOutages(ctx, at(21), 10)
	require.NoError(t, err)
	require.EqualValues(t, 1, deleted)
}

func testPublications(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	createProject(t, s, "other")
	publish(t, s, version("b/two", "1.0.0", "sha256:a", 1))
	publish(t, s, version(hello, "1.0.0", "sha256:b", 2))
	publish(t, s, version(hello, "1.1.0", "sha256:c", 3))
	foreign := version(hello, "1.0.0", "sha256:b", 2)
	foreign.Project = "other"
	publish(t, s, foreign)
	names := func(from, to time.Time, limit int) (out []string) {
		t.Helper()
		found, err := s.Annotations().ListPublications(ctx, here, from, to, limit)
		require.NoError(t, err)
		for _, v := range found {
			require.Equal(t, "ada", v.Publisher)
			out = append(out, v.Workflow+"@"+v.Version+" "+v.PublishedAt.Sub(at(0)).String())
		}
		return out
	}
	require.Equal(t, []string{
		hello + "@1.1.0 " + at(3).Sub(at(0)).String(), hello + "@1.0.0 " +
			at(2).Sub(at(0)).String()}, names(at(2), at(4), 10))
	require.Len(t, names(at(0), at(3), 10), 2, "the end is exclusive")
	require.Len(t, names(at(0), at(9), 1), 1)
}
