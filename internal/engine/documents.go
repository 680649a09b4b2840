package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// DocumentSource reads canonical documents by hash.
type DocumentSource interface {
	Document(ctx context.Context, hash string) ([]byte, error)
}

// maxCached is the number of compiled documents that a process caches. When it is reached, the cache is cleared:
// documents are few, and compiling one takes milliseconds.
const maxCached = 1000

// loadTimeout bounds the loading of a document, which continues after its first caller has returned.
const loadTimeout = 10 * time.Second

// Documents compiles and caches documents. A hash always identifies the same document, so no entry becomes stale.
type Documents struct {
	source DocumentSource
	limits dsl.Limits
	flight singleflight.Group

	mu     sync.RWMutex
	cached map[string]*dsl.Document
}

var _ flow.Documents = (*Documents)(nil)

// NewDocuments returns an empty cache over a source.
func NewDocuments(source DocumentSource, limits dsl.Limits) *Documents {
	// Documents that were accepted under other limits must stay readable. The canonical form is longer than most
	// sources.
	limits.MaxBytes *= 4
	return &Documents{source: source, limits: limits, cached: map[string]*dsl.Document{}}
}

// Document returns the document with this hash.
func (d *Documents) Document(ctx context.Context, hash string) (*dsl.Document, error) {
	if doc := d.lookup(hash); doc != nil {
		return doc, nil
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

func (d *Documents) lookup(hash string) *dsl.Document {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.cached[hash]
}

func (d *Documents) load(ctx context.Context, hash string) (*dsl.Document, error) {
	if doc := d.lookup(hash); doc != nil {
		return doc, nil // another load has finished since the caller's lookup
	}
	canonical, err := d.source.Document(ctx, hash)
	if err != nil {
		return nil, err
	}
	doc, problems := dsl.Parse(canonical, dsl.WithLimits(d.limits), dsl.Stored())
	if doc == nil {
		return nil, fmt.Errorf("compiling the stored document %q: %w", hash, problems)
	}
	if doc.Hash() != hash {
		return nil, fmt.Errorf("the stored document %q has the hash %q: the store was changed by hand", hash, doc.Hash())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.cached) >= maxCached {
		d.cached = map[string]*dsl.Document{}
	}
	d.cached[hash] = doc
	return doc, nil
}
