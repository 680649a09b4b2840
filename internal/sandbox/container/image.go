package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/signalbox-dev/signalbox/internal/sandbox/image"
)

// Pull policies of images.
const (
	PullIfNotPresent = "ifNotPresent"
	PullAlways       = "always"
	PullNever        = "never"
)

// permitted returns the full name of the image of a program, if the program may use it.
func (e *Engine) permitted(p Program) (string, error) {
	full, err := image.FullName(p.Image)
	switch {
	case err != nil:
		return "", refuse("%v", err)
	case !p.Trusted && !image.Permitted(e.opts.Images, full):
		return "", refuse("the image %s is not among runner.containers.images of the runner", full)
	}
	return full, nil
}

// imageConfig is what an image brings with it: its command line, and the folders that it wants to be volumes.
type imageConfig struct {
	Entrypoint, Cmd []string
	Volumes         map[string]struct{}
}

// provide makes an image available by a policy, and returns its configuration.
func (e *Engine) provide(ctx context.Context, name, policy string) (imageConfig, error) {
	var found struct {
		Size   int64
		Config imageConfig
	}
	inspect := func() error {
		return e.call(ctx, http.MethodGet, "/images/"+name+"/json", nil, nil, &found)
	}
	err := inspect()
	missing := statusOf(err) == http.StatusNotFound
	pulls := policy == PullAlways || missing && policy != PullNever
	if pulls {
		if err := e.pull(ctx, name); err != nil {
			return imageConfig{}, err
		}
		err = inspect()
	} else if missing {
		return imageConfig{}, refuse("the container engine does not have the image %s, and pullPolicy is %s", name, policy)
	}
	if err == nil && found.Size > e.opts.MaxImage {
		err = tooLarge(name, e.opts.MaxImage)
		if pulls { // what was pulled was smaller than what it contains
			err = errors.Join(err, e.call(ctx, http.MethodDelete, "/images/"+name, nil, nil, nil))
		}
	}
	return found.Config, err
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
