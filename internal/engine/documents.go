package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/jellydator/ttlcache/v3"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// DocumentSource reads canonical documents, and the texts that they refer to, by hash.
type DocumentSource interface {
	Document(ctx context.Context, hash string) ([]byte, error)
	Resources(ctx context.Context, hashes []string) (map[string][]byte, error)
}

// The bounds of a process: compiled documents that it caches, by number and by memory, and documents that it compiles
// at a time.
const (
	maxCached       = 1000
	maxCachedMemory = 128 << 20
	maxCompiling    = 2
)

// loadTimeout bounds the loading of a document, which continues after its first caller has returned.
const loadTimeout = 10 * time.Second

// Documents compiles and caches documents. A hash always identifies the same document, so no entry becomes stale.
type Documents struct {
	source DocumentSource
	limits dsl.Limits
	flight singleflight.Group
	slots  *semaphore.Weighted
	cached *ttlcache.Cache[string, *dsl.Document]
}

var _ flow.Documents = (*Documents)(nil)

// NewDocuments returns an empty cache over a source.
func NewDocuments(source DocumentSource, limits dsl.Limits) *Documents {
	// Documents that were accepted under other limits must stay readable.
	return &Documents{
		source: source, limits: limits.Stored(), slots: semaphore.NewWeighted(maxCompiling),
		cached: ttlcache.New(
			ttlcache.WithCapacity[string, *dsl.Document](maxCached),
			ttlcache.WithMaxCost(maxCachedMemory, func(item ttlcache.CostItem[string, *dsl.Document]) uint64 {
				return uint64(min(item.Value.Memory(), maxCachedMemory/2)) //nolint:gosec // the largest document is cached, too
			})),
	}
}

// Document returns the document with this hash.
func (d *Documents) Document(ctx context.Context, hash string) (*dsl.Document, error) {
	if cached := d.cached.Get(hash); cached != nil {
		return cached.Value(), nil
	}
	// The first caller may return early. The others wait for the same result.
	flight := d.flight.DoChan(hash, func() (any, error) {
		loading, done := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer done()
		return d.load(loading, hash)
	})
	select {
	case loaded := <-flight:
		if loaded.Err != nil {
			return nil, loaded.Err
		}
		return loaded.Val.(*dsl.Document), nil //nolint:forcetypeassert // load returns nothing else
	case <-ctx.Done():
		return nil, fmt.Errorf("loading document %q: %w", hash, ctx.Err())
	}
}

func (d *Documents) load(ctx context.Context, hash string) (*dsl.Document, error) {
	if cached := d.cached.Get(hash); cached != nil {
		return cached.Value(), nil // another load has finished since the caller's lookup
	}
	canonical, err := d.source.Document(ctx, hash)
	if err != nil {
		return nil, err
	}
	source, resources, err := d.unpack(ctx, canonical)
	if err != nil {
		return nil, fmt.Errorf("reading the stored document %q: %w", hash, err)
	}
	if err := d.slots.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("waiting to compile document %q: %w", hash, err)
	}
	defer d.slots.Release(1)
	doc, violations := dsl.Parse(source, dsl.WithLimits(d.limits), dsl.WithContext(ctx),
		dsl.WithResources(resources))
	if err := ctx.Err(); err != nil && doc == nil {
		return nil, fmt.Errorf("compiling the stored document %q: %w", hash, err)
	}
	if doc == nil {
		return nil, fmt.Errorf("compiling the stored document %q: %w", hash, violations)
	}
	if doc.Hash() != hash {
		return nil, fmt.Errorf("the stored document %q has the hash %q: the store was changed by hand", hash, doc.Hash())
	}
	d.cached.Set(hash, doc, ttlcache.NoTTL)
	return doc, nil
}

// unpack returns the source of a canonical document, and the texts that it refers to.
func (d *Documents) unpack(ctx context.Context, canonical []byte) ([]byte, *dsl.Resources, error) {
	resources := dsl.NewResources()
	source, pins, err := dsl.Unpack(canonical)
	if err != nil || len(pins) == 0 {
		return source, resources, err
	}
	hashes := make([]string, len(pins))
	for i, pin := range pins {
		hashes[i] = pin.Hash
	}
	contents, err := d.source.Resources(ctx, hashes)
	if err != nil {
		return nil, nil, err
	}
	for _, pin := range pins {
		resources.Add(pin.URI, contents[pin.Hash])
	}
	return source, resources, nil
}
