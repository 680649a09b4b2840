package container

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Pull policies of images.
const (
	PullIfNotPresent = "ifNotPresent"
	PullAlways       = "always"
	PullNever        = "never"
)

// fullName returns the name of an image with its registry and its tag, as Docker completes it.
func fullName(image string) string {
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

// imageName is the form of names of images.
var imageName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/-]*(@sha256:[0-9a-f]{64})?$`) //nolint:gochecknoglobals // a constant

// permitted returns the full name of an image that a program may use.
func (e *Engine) permitted(image string) (string, error) {
	if !imageName.MatchString(image) || strings.Contains(image, "..") {
		return "", refuse("%.200q is not the name of an image", image)
	}
	name := fullName(image)
	if slices.ContainsFunc(e.opts.Images, func(pattern string) bool { return matches(pattern, name) }) {
		return name, nil
	}
	return "", refuse("the image %s is not among runner.containers.images of the runner", name)
}

// matches reports whether a pattern permits the image with a full name. A pattern without a tag permits each tag.
func matches(pattern, name string) bool {
	full := pattern
	if pattern != "**" {
		full = strings.TrimSuffix(fullName(pattern), ":latest")
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

// provide makes an image available by a policy.
func (e *Engine) provide(ctx context.Context, name, policy string) error {
	var image struct{ Size int64 }
	inspect := func() error {
		return e.call(ctx, http.MethodGet, "/images/"+name+"/json", nil, nil, &image)
	}
	err := inspect()
	if missing := statusOf(err) == http.StatusNotFound; policy == PullAlways || missing && policy != PullNever {
		if err := e.pull(ctx, name); err != nil {
			return err
		}
		err = inspect()
	} else if missing {
		return refuse("the container engine does not have the image %s, and pullPolicy is %s", name, policy)
	}
	if err == nil && image.Size > e.opts.MaxImage {
		return tooLarge(name, e.opts.MaxImage)
	}
	return err
}

func tooLarge(name string, limit int64) error {
	return refuse("the image %s has more than %d bytes", name, limit)
}

// pull pulls an image. The engine ends that when the request ends, which it does at the limit.
func (e *Engine) pull(ctx context.Context, name string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := e.send(ctx, http.MethodPost, "/images/create", url.Values{"fromImage": {name}}, nil)
	if statusOf(err) != 0 {
		return refuse("the image %s cannot be pulled: %v", name, err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	layers := map[string]int64{}
	for progress := json.NewDecoder(response.Body); ; {
		var event struct {
			ID             string
			Error          string
			ProgressDetail struct{ Total int64 }
		}
		switch err := progress.Decode(&event); {
		case err == io.EOF: //nolint:errorlint // json returns it as it is
			return nil
		case err != nil:
			return fmt.Errorf("pulling the image %s: %w", name, err)
		case event.Error != "":
			return refuse("the image %s cannot be pulled: %s", name, event.Error)
		}
		layers[event.ID] = max(layers[event.ID], event.ProgressDetail.Total)
		size := int64(0)
		for _, layer := range layers {
			size += layer
		}
		if size > e.opts.MaxImage {
			return tooLarge(name, e.opts.MaxImage)
		}
	}
}
