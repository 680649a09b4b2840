package workflow

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

// The bounds of a process. The largest documents take about a second and 150 MB to compile.
const (
	maxCompiling    = 2 // at a time; one of each caller
	maxWaiting      = 8 // for each caller
	maxCached       = 500
	maxCachedMemory = 64 << 20
)

// compileTimeout bounds the compilation of one document, without the time that it waits for a slot.
const compileTimeout = 10 * time.Second

// compiler compiles documents for the callers of the API: a few at a time, one of each caller, and each document once
// while it is in the cache. It is safe for concurrent use.
type compiler struct {
	limits  dsl.Limits
	all     *semaphore.Keyed // with one key
	callers *semaphore.Keyed
	cached  *ttlcache.Cache[[sha256.Size]byte, compilation] // by the hash of the source and its resources
}

// compilation is the result of compiling a source. Document is nil if one of the violations is an error. It is not
// changed.
type compilation struct {
	document   *dsl.Document
	violations dsl.Violations
	missing    []dsl.Reference // the texts that the document refers to and that were not given
}

func newCompiler(limits dsl.Limits) *compiler {
	return &compiler{
		limits: limits, all: semaphore.NewKeyed(maxCompiling), callers: semaphore.NewKeyed(1),
		cached: ttlcache.New(
			ttlcache.WithCapacity[[sha256.Size]byte, compilation](maxCached),
			ttlcache.WithMaxCost(maxCachedMemory, func(item ttlcache.CostItem[[sha256.Size]byte, compilation]) uint64 {
				return item.Value.memory()
			})),
	}
}

func (c compilation) memory() uint64 {
	const violation = 1 << 10
	memory := int64(len(c.violations)) * violation
	if c.document != nil {
		memory += c.document.Memory()
	}
	return uint64(memory) //nolint:gosec // not negative
}

// compile compiles a source with what is known of the texts that it refers to. It ends with ctx, and refuses callers
// for which many documents wait already.
func (c *compiler) compile(ctx context.Context, source string, resources *dsl.Resources) (compilation,
	error) {
	key := sha256.Sum256([]byte(source + "\x00" + resources.Key()))
	if cached := c.cached.Get(key); cached != nil {
		return cached.Value(), nil
	}
	actor, _ := auth.ActorFrom(ctx)
	release, err := c.callers.AcquireWithin(ctx, actor.ID, maxWaiting)
	if err != nil {
		return compilation{}, compileError(err)
	}
	defer release()
	if cached := c.cached.Get(key); cached != nil { // the same caller has sent it twice
		return cached.Value(), nil
	}
	free, err := c.all.Acquire(ctx, "")
	if err != nil {
		return compilation{}, compileError(err)
	}
	defer free()

	ctx, cancel := context.WithTimeout(ctx, compileTimeout)
	defer cancel()
	var out compilation
	out.document, out.violations = dsl.Parse([]byte(source), dsl.WithLimits(c.limits), dsl.WithContext(ctx),
		dsl.WithResources(resources))
	out.missing = resources.Missing()
	if err := ctx.Err(); err != nil && out.document == nil {
		return compilation{}, compileError(err)
	}
	c.cached.Set(key, out, ttlcache.NoTTL)
	return out, nil
}

func compileError(err error) error {
	if errors.Is(err, semaphore.ErrFull) {
		return apperror.New(apperror.Exhausted, apperror.RateLimited,
			"%d other documents of this caller wait to be checked: send them one after the other", maxWaiting).
			WithRetry(time.Second)
	}
	return fmt.Errorf("checking the document: %w", err)
}
