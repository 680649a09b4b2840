package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/notice"
)

// A module or a version that is linked, and the text of its licence, are in the notice, and nothing else is.
func TestNoticeHasEveryModuleOfThePrograms(t *testing.T) {
	t.Parallel()
	text, err := notice.Text()
	require.NoError(t, err)
	programs, err := modules(t.Context(), repository)
	require.NoError(t, err)
	require.Greater(t, len(programs), 200)
	require.True(t, strings.HasPrefix(text, introduction+render(programsTitle, programs)),
		"the notice is out of date: run make generate")
}

func TestNoticeHasEveryPackageOfTheWebUI(t *testing.T) {
	t.Parallel()
	text, err := notice.Text()
	require.NoError(t, err)
	_, part, found := strings.Cut(text, studioTitle)
	require.True(t, found)
	listed, err := studio(repository)
	require.NoError(t, err)
	require.Greater(t, len(listed), 100)
	for _, c := range listed {
		require.GreaterOrEqual(t, strings.Count(part, "\n"+c.String()+"\n"), 2,
			"%s is listed, and stands above its licence: run make generate", c)
	}
	if _, err := os.Stat(filepath.Join(repository, "ui/node_modules")); err != nil {
		t.Skip("the packages are not installed: only their names were compared")
	}
	all, err := packages(repository)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(text, render(studioTitle, all)), "the notice is out of date: run make generate")
}

func TestComponentsWithoutALicenceAreRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "NOTICE"), []byte("of its authors"), 0o600))
	_, err := licencesOf(repository, "example.com/new", []string{folder})
	require.ErrorContains(t, err, "example.com/new has no licence text")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "LICENSE.md"), []byte("do what you like\r\n\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "license.go"), []byte("package x"), 0o600))
	all, err := licencesOf(repository, "example.com/new", []string{folder})
	require.NoError(t, err)
	require.Equal(t, []string{"do what you like", "of its authors"}, all)
	_, err = licencesOf(repository, "example.com/new", []string{filepath.Join(folder, "missing")})
	require.ErrorContains(t, err, "make generate")
}

func TestEqualTextsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	require.Equal(t, `
a 1 (only in signalbox)
b 2

--------------------------------------------------------------------------------
a 1 (only in signalbox)
b 2

MIT

`, "\n"+strings.SplitN(render("T", []component{{name: "b", version: "2", texts: []string{"MIT"}}, {name: "a", version: "1", only: "signalbox", texts: []string{"MIT"}}}), "\n\n", 2)[1])
}
