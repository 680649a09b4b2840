package integration_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// postStep returns a task that posts its input to a URL.
func postStep(name, url string) string {
	return "  - " + name + ":\n      call: http\n      with:\n        method: post\n        endpoint: " + url +
		"\n        body: ${ . }\n"
}

// getStep returns a task that reads a URL.
func getStep(name, url string) string {
	return "  - " + name + ":\n      call: http\n      with:\n        method: get\n        endpoint: " + url + "\n"
}

// version returns a document with another version.
func version(source, version string) string {
	return strings.Replace(source, "version: '1.0.0'", "version: '"+version+"'", 1)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// namespaceOf returns the workflow namespace of a document.
func namespaceOf(source string) string {
	_, rest, _ := strings.Cut(source, "namespace: ")
	namespace, _, _ := strings.Cut(rest, "\n")
	return namespace
}
