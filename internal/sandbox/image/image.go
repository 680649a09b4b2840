// Package image has the names of container images, and the patterns that permit them. It makes no I/O.
package image

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// form is that of names of images.
var form = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/-]*(@sha256:[0-9a-f]{64})?$`) //nolint:gochecknoglobals // a constant

// FullName returns the name of an image with its registry and its tag, as Docker completes it.
func FullName(name string) (string, error) {
	if !form.MatchString(name) || strings.Contains(name, "..") {
		return "", fmt.Errorf("%.200q is not the name of an image", name)
	}
	return complete(name), nil
}

func complete(image string) string {
	name, digest, pinned := strings.Cut(image, "@")
	first, _, nested := strings.Cut(name, "/")
	switch {
	case !nested:
		name = "docker.io/library/" + name
	case !strings.ContainsAny(first, ".:*") && first != "localhost":
		name = "docker.io/" + name
	}
	if pinned {
		return name + "@" + digest
	}
	if !strings.Contains(name[strings.LastIndexByte(name, '/'):], ":") {
		name += ":latest"
	}
	return name
}

// withoutTag returns the name of an image without its tag and its digest.
func withoutTag(name string) string {
	name, _, _ = strings.Cut(name, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	return name
}

// Permitted reports whether one of the patterns permits the image with a full name. In a pattern * stands for any text
// without a slash, and ** for any text. A pattern without a tag permits each tag.
func Permitted(patterns []string, fullName string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, fullName) })
}

func matches(pattern, name string) bool {
	full := pattern
	if pattern != "**" {
		full = strings.TrimSuffix(complete(pattern), ":latest")
	}
	if strings.HasSuffix(pattern, ":latest") {
		full += ":latest"
	}
	expression := regexp.QuoteMeta(full)
	expression = strings.ReplaceAll(expression, `\*\*`, ".*")
	expression = strings.ReplaceAll(expression, `\*`, "[^/]*")
	compiled, err := regexp.Compile("^" + expression + "$")
	return err == nil && (compiled.MatchString(name) || compiled.MatchString(withoutTag(name)))
}
