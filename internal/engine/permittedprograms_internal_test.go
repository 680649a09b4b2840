package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// The images of a project restrict its containers, whatever runners permit.
func TestImagesOfProjects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		images    []string
		image     string
		permitted bool
	}{
		"no restriction":     {nil, "anything", true},
		"no container":       {[]string{"alpine:*"}, "", true},
		"one of the images":  {[]string{"alpine:*"}, "alpine:3.22", true},
		"another registry":   {[]string{"alpine:*"}, "registry.example.com/alpine:3.22", false},
		"not a name":         {[]string{"**"}, "a b", false},
		"all of a registry":  {[]string{"registry.example.com/**"}, "registry.example.com/tools/jq@sha256:" + hash, true},
		"the full name only": {[]string{"docker.io/library/alpine"}, "alpine", true},
	} {
		err := PermittedPrograms{Images: c.images}.image(flow.PermitRequest{Project: "shop", Kind: "container", Image: c.image})
		if c.permitted {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, "Image not permitted", name)
		require.ErrorContains(t, err, "signalbox project set shop --images", name)
	}
}

const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
