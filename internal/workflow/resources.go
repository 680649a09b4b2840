package workflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jellydator/ttlcache/v3"
	"golang.org/x/sync/errgroup"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

// Submission is a document with the files beside it that it refers to, by their paths relative to its folder.
type Submission struct {
	Source string
	Files  map[string]string
}

// checkFiles returns an error for files that are more or larger than a document may have.
func (s Submission) checkFiles() error {
	total := 0
	for _, content := range s.Files {
		total += len(content)
	}
	if total <= dsl.MaxResourcesBytes && len(s.Files) <= dsl.MaxResources {
		return nil
	}
	return apperror.New(apperror.Exhausted, apperror.DefinitionTooLarge,
		"%d files with %d bytes are sent with the document, the limits are %d and %d bytes: refer to fewer or smaller files",
		len(s.Files), total, dsl.MaxResources, dsl.MaxResourcesBytes).
		WithField("files", "are too large")
}

// Resource is a text outside the document that a version refers to, as it was when the version was published.
type Resource struct {
	URI      string
	Hash     string // see dsl.ContentHash
	Size     int64
	LoadedAt time.Time
	// Content is set only for Publish. Store.Resources returns that of published versions.
	Content []byte
}

// Loader reads web resources.
type Loader interface {
	// Load reads a resource of the kind dsl.ReferenceWeb, of at most dsl.MaxResourceBytes, with the authentication of the
	// reference and the secrets of the project. Its error is a text for the author of the document.
	Load(ctx context.Context, project string, r dsl.Reference) ([]byte, error)
}

// Functions finds the functions in the catalogs of projects.
type Functions interface {
	// Source returns the text of a function by the name of its call, name:version@default.
	Source(ctx context.Context, project, reference string) ([]byte, error)
}

// The bounds of loading.
const (
	maxLoading   = 4 // resources of a document at a time
	maxRounds    = dsl.MaxFunctionDepth + 2
	loadsTimeout = 30 * time.Second // for all resources of a document
	// loadedFor is the time for which a validation uses what an earlier one has loaded: the editor of the web UI validates
	// after each change. A publication never does.
	loadedFor       = 30 * time.Second
	maxLoadedMemory = 32 << 20
)

// resources finds the texts that documents refer to.
type resources struct {
	store     Store
	loader    Loader    // nil: there are no web resources
	functions Functions // nil: projects have none
	callers   *semaphore.Keyed
	recent    *ttlcache.Cache[string, []byte] // web resources without authentication, by URI
}

func newResources(store Store) *resources {
	return &resources{
		store: store, callers: semaphore.NewKeyed(1),
		recent: ttlcache.New(
			ttlcache.WithTTL[string, []byte](loadedFor), ttlcache.WithDisableTouchOnHit[string, []byte](),
			ttlcache.WithMaxCost(maxLoadedMemory, func(item ttlcache.CostItem[string, []byte]) uint64 {
				return uint64(len(item.Value))
			})),
	}
}

// purpose is why a document is compiled.
type purpose int

const (
	// toCheck: callers may only read. No credentials are sent for them, and what was loaded recently is used.
	toCheck purpose = iota
	// toPublish: everything is loaded.
	toPublish
)

// compileSubmission compiles a document with all texts that it refers to.
func (s *Service) compileSubmission(ctx context.Context, project string, sub Submission,
	why purpose) (compilation, error) {
	found := dsl.NewResources()
	for range maxRounds {
		compiled, err := s.compiler.compile(ctx, sub.Source, found)
		if err != nil || len(compiled.missing) == 0 {
			return compiled, err
		}
		if err := s.resources.find(ctx, project, sub.Files, compiled.missing, why, found); err != nil {
			return compilation{}, err
		}
	}
	return compilation{}, errors.New("the resources of the document refer to others without end")
}

// compileVersion compiles a published version with the texts that were stored with it.
func (s *Service) compileVersion(ctx context.Context, v Version) (compilation, error) {
	_, pins, err := dsl.Unpack(v.Canonical)
	if err != nil {
		return compilation{}, err
	}
	found := dsl.NewResources()
	if len(pins) > 0 {
		hashes := make([]string, len(pins))
		for i, pin := range pins {
			hashes[i] = pin.Hash
		}
		contents, err := s.store.Resources(ctx, hashes)
		if err != nil {
			return compilation{}, err
		}
		for _, pin := range pins {
			found.Add(pin.URI, contents[pin.Hash])
		}
	}
	return s.compiler.compile(ctx, v.Source, found)
}

// find adds the missing texts, or the reasons why there are none.
func (r *resources) find(ctx context.Context, project string, files map[string]string, missing []dsl.Reference,
	why purpose, found *dsl.Resources) error {
	var web []dsl.Reference
	for _, reference := range missing {
		switch reference.Kind {
		case dsl.ReferenceFile:
			if content, sent := files[reference.URI]; sent {
				found.Add(reference.URI, []byte(content))
				continue
			}
			found.Fail(reference.URI, errors.New("the file was not sent with the document: the command line sends the files "+
				"beside a document"))
		case dsl.ReferenceFunction:
			if err := r.addFunction(ctx, project, reference, found); err != nil {
				return err
			}
		case dsl.ReferenceWeb:
			switch {
			case r.loader == nil:
				found.Fail(reference.URI, errors.New("this server reads no web resources"))
			case why == toCheck && reference.Authentication != nil:
				found.Postpone(reference.URI) // callers who may only read must not use the project's secrets
			default:
				web = append(web, reference)
			}
		}
	}
	return r.load(ctx, project, web, why, found)
}

// addFunction adds a function of the project's catalog.
func (r *resources) addFunction(ctx context.Context, project string, reference dsl.Reference,
	found *dsl.Resources) error {
	if r.functions == nil {
		found.Fail(reference.URI, errors.New("this server has no functions of projects"))
		return nil
	}
	content, err := r.functions.Source(ctx, project, reference.URI)
	switch f, ok := apperror.From(err); {
	case err == nil:
		found.Add(reference.URI, content)
	case ok && f.Class == apperror.NotFound:
		found.Fail(reference.URI, errors.New(f.Message))
	default:
		return err
	}
	return nil
}

// load reads web resources, a few at a time. One caller loads those of one document at a time.
func (r *resources) load(ctx context.Context, project string, web []dsl.Reference, why purpose,
	found *dsl.Resources) error {
	if len(web) == 0 {
		return nil
	}
	if len(web) > dsl.MaxResources {
		for _, reference := range web {
			found.Fail(reference.URI, fmt.Errorf("the document refers to more than %d resources", dsl.MaxResources))
		}
		return nil
	}
	actor, _ := auth.ActorFrom(ctx)
	release, err := r.callers.AcquireWithin(ctx, actor.ID, maxWaiting)
	if err != nil {
		return compileError(err)
	}
	defer release()
	bounded, cancel := context.WithTimeout(ctx, loadsTimeout)
	defer cancel()
	contents, failures := make([][]byte, len(web)), make([]error, len(web))
	var group errgroup.Group
	group.SetLimit(maxLoading)
	for i, reference := range web {
		group.Go(func() error {
			contents[i], failures[i] = r.loadOne(bounded, project, reference, why)
			return nil
		})
	}
	_ = group.Wait() // its functions return no error
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("loading the resources of the document: %w", err)
	}
	total := 0
	for i, reference := range web {
		total += len(contents[i])
		switch {
		case failures[i] != nil:
			found.Fail(reference.URI, failures[i])
		case total > dsl.MaxResourcesBytes:
			found.Fail(reference.URI, fmt.Errorf("the resources of the document have more than %d bytes together",
				dsl.MaxResourcesBytes))
		default:
			found.Add(reference.URI, contents[i])
		}
	}
	return nil
}

func (r *resources) loadOne(ctx context.Context, project string, reference dsl.Reference, why purpose) ([]byte, error) {
	if why == toCheck {
		if recent := r.recent.Get(reference.URI); recent != nil {
			return recent.Value(), nil
		}
	}
	content, err := r.loader.Load(ctx, project, reference)
	if err != nil {
		return nil, err
	}
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
		return nil, errors.New("it is not a text in UTF-8")
	}
	if reference.Authentication == nil {
		r.recent.Set(reference.URI, content, ttlcache.DefaultTTL)
	}
	return content, nil
}

// pinned returns the resources of a document that is published.
func pinned(doc *dsl.Document, at time.Time) []Resource {
	var out []Resource
	for _, r := range doc.Resources {
		out = append(out, Resource{
			URI: r.URI, Hash: r.Hash, Size: int64(len(r.Content)), LoadedAt: at, Content: r.Content,
		})
	}
	return out
}

// Taken returns the error for a version that is published with other content. If only resources differ, it names them.
func Taken(published, v Version) error {
	before, old, err := dsl.Unpack(published.Canonical)
	after, pins, err2 := dsl.Unpack(v.Canonical)
	if err == nil && err2 == nil && bytes.Equal(before, after) {
		if changed := changedResources(old, pins); len(changed) > 0 {
			return apperror.New(apperror.Exists, apperror.VersionTaken,
				"version %q of workflow %q is published with another content of %s: give the new one a new version",
				v.Version, v.Workflow, strings.Join(changed, ", "))
		}
	}
	return apperror.New(apperror.Exists, apperror.VersionTaken,
		"version %q of workflow %q is published with another document: give the new one a new version",
		v.Version, v.Workflow)
}

// changedResources returns the URIs that two lists do not have with the same hash, sorted.
func changedResources(a, b []dsl.Pin) []string {
	hashes := map[string]string{}
	for _, pin := range a {
		hashes[pin.URI] = pin.Hash
	}
	changed := map[string]bool{}
	for _, pin := range b {
		if hashes[pin.URI] != pin.Hash {
			changed[pin.URI] = true
		}
		delete(hashes, pin.URI)
	}
	for uri := range hashes {
		changed[uri] = true
	}
	return slices.Sorted(maps.Keys(changed))
}

func versionDetail(v Version) json.RawMessage {
	content := struct {
		Version   string    `json:"version"`
		Hash      string    `json:"hash"`
		Resources []dsl.Pin `json:"resources,omitempty"`
	}{Version: v.Version, Hash: v.Hash}
	for _, r := range v.Resources {
		content.Resources = append(content.Resources, dsl.Pin{URI: r.URI, Hash: r.Hash})
	}
	detail, _ := json.Marshal(content) //nolint:errchkjson // strings always encode
	return detail
}
