package container

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPermittedImages(t *testing.T) {
	t.Parallel()
	const digest = "@sha256:0123456789012345678901234567890123456789012345678901234567890123"
	for _, c := range []struct {
		pattern, image string
		want           bool
	}{
		{"alpine", "alpine", true},
		{"alpine", "alpine:3.20", true},
		{"alpine", "alpine" + digest, true},
		{"alpine", "docker.io/library/alpine", true},
		{"alpine", "other/alpine", false},
		{"alpine", "alpine2", false},
		{"alpine", "registry.example.com/library/alpine", false},
		{"alpine:3.20", "alpine:3.20", true},
		{"alpine:3.20", "alpine:3.21", false},
		{"alpine:3.20", "alpine", false},
		{"alpine:latest", "alpine", true},
		{"alpine:latest", "alpine:3", false},
		{"docker.io/library/*", "alpine:3", true},
		{"docker.io/library/*", "team/alpine", false},
		{"registry.example.com:5000/**", "registry.example.com:5000/a/b/c:1", true},
		{"registry.example.com:5000/**", "registry.example.com/a", false},
		{"registry.example.com/*", "registry.example.com.evil.org/a", false},
		{"localhost/a", "localhost/a:1", true},
		{"**", "registry.example.com/a/b" + digest, true},
	} {
		e := New(Options{Images: []string{c.pattern}})
		_, err := e.permitted(Program{Image: c.image})
		require.Equal(t, c.want, err == nil, "%s %s: %v", c.pattern, c.image, err)
	}
}
