package semaphore

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Shared bounds the concurrent work of all keys together, and divides it among them.
//
//	s := semaphore.NewShared(runtime.GOMAXPROCS(0))
//	release, err := s.Acquire(ctx, project)
//	if err != nil { return err }
//	defer release()
//
// When callers with several keys wait for a turn, the key with the fewest turns in use is next, and among equals the
// one that was served least recently. A key with hundreds of callers thus delays a caller with another key by one turn,
// not by hundreds. A key alone gets all turns. Callers with the same key are served in order of arrival, or of the time
// that they give [Shared.Enter].
//
// It is safe for concurrent use.
type Shared struct {
	turns int
	// each is how many turns a key uses at most while callers with other keys are active, here or in also; 0: turns.
	each int
	also []*Shared

	mu     sync.Mutex
	free   int
	served int64 // turns assigned so far
	keys   map[string]*keyTurns
	// recent are the last two keys that were served.
	recent [2]lastTurn
}

// lastTurn is when a key was served last.
type lastTurn struct {
	key string
	at  time.Time
}

// keyTurns is the state of one key. It is removed when it is empty.
type keyTurns struct {
	using   int
	resting int           // turns that were given back, but not for this key
	served  int64         // the number of its last turn
	waiting []*Place      // the oldest work first
	fewer   []fewerWaiter // the callers of Backlog
}

// Place is a caller's place among those that wait for a turn of a key, and then its turn.
type Place struct {
	shared *Shared
	key    string
	since  time.Time
	turn   chan struct{} // closed when it has a turn; nil: it had one at once
	given  bool          // guarded by shared.mu
}

// Wait waits for the turn for the given time, and reports whether the caller has it. It keeps its place meanwhile.
func (p *Place) Wait(wait time.Duration) bool {
	if p.turn == nil {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.turn:
		return true
	case <-timer.C:
	}
	select {
	case <-p.turn: // both happened
		return true
	default:
		return false
	}
}

// Leave ends the turn, which the next caller gets, or gives up the place. It must be called once.
func (p *Place) Leave() {
	if !p.shared.withdraw(p) {
		return
	}
	p.shared.Release(p.key)
}

// fewerWaiter waits until fewer callers than the limit wait for a turn, none of them for longer than longest.
type fewerWaiter struct {
	limit   int
	longest time.Duration
	below   chan struct{}
}

// exceeded reports whether so many callers wait, or one for so long. The oldest is the first.
func exceeded(waiting []*Place, limit int, longest time.Duration) bool {
	return len(waiting) >= limit || len(waiting) > 0 && time.Since(waiting[0].since) > longest
}

// NewShared returns a semaphore with the given number of turns, at least one.
func NewShared(turns int) *Shared {
	turns = max(turns, 1)
	return &Shared{turns: turns, free: turns, keys: map[string]*keyTurns{}}
}

// activeFor is the time for which a key counts as active after a turn.
const activeFor = 10 * time.Second

// Limit limits the turns that a key uses while callers with other keys are active: that got a turn of this semaphore,
// or of one of the others, within the last ten seconds. A key alone still gets all turns. It must be called before the
// semaphore is used.
func (s *Shared) Limit(each int, also ...*Shared) *Shared {
	s.each, s.also = max(each, 1), also
	return s
}

// Acquire waits for a turn of the key, and returns the function that releases it; further calls of it have no effect.
// Its error is that of ctx. While a turn is free, the end of ctx has no effect.
func (s *Shared) Acquire(ctx context.Context, key string) (release func(), err error) {
	if p := s.Enter(key, time.Now()); p.turn != nil {
		select {
		case <-p.turn:
		case <-ctx.Done():
			if !s.withdraw(p) {
				return nil, ctx.Err() //nolint:wrapcheck // the context's own
			}
		}
	}
	return sync.OnceFunc(func() { s.Release(key) }), nil
}

// Release ends a turn of the key. The next caller gets it.
func (s *Shared) Release(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[key].using--
	s.free++
	s.serve()
	s.changed(key)
}

// Rest ends a turn of the key like Release, but callers with the same key get it only after the given time: what the
// key requests leaves the others room meanwhile.
func (s *Shared) Rest(key string, lasts time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[key]
	k.using--
	k.resting++
	s.free++
	s.serve()
	time.AfterFunc(lasts, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		k.resting--
		s.serve()
		s.changed(key)
	})
}

// Contended reports whether callers with other keys are active, see [Shared.Limit], and more callers wait for a turn of
// the key.
func (s *Shared) Contended(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[key]
	return k != nil && len(k.waiting) > 0 && s.others(key)
}

// others reports whether callers with other keys are active. The caller holds the lock.
func (s *Shared) others(key string) bool {
	since := time.Now().Add(-activeFor)
	return s.othersSince(key, since) || slices.ContainsFunc(s.also, func(also *Shared) bool {
		also.mu.Lock()
		defer also.mu.Unlock()
		return also.othersSince(key, since)
	})
}

func (s *Shared) othersSince(key string, at time.Time) bool {
	return slices.ContainsFunc(s.recent[:], func(r lastTurn) bool { return r.key != key && !r.at.Before(at) })
}

// Backlog returns a channel that is closed when fewer callers than a number for each of the turns that the key may use
// wait for one, and none of them for longer than longest, or nil if that is already the case.
func (s *Shared) Backlog(key string, perTurn int, longest time.Duration) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[key]
	if k == nil || !exceeded(k.waiting, perTurn, longest) {
		return nil
	}
	limit := s.most(key) * perTurn
	if !exceeded(k.waiting, limit, longest) {
		return nil
	}
	for _, f := range k.fewer {
		if f.limit == limit && f.longest == longest {
			return f.below
		}
	}
	f := fewerWaiter{limit, longest, make(chan struct{})}
	k.fewer = append(k.fewer, f)
	return f.below
}

// Enter returns the caller's turn of the key, or its place among those that wait for one: behind the callers whose work
// has waited since before the given time.
func (s *Shared) Enter(key string, since time.Time) *Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[key]
	if k == nil {
		k = &keyTurns{}
		s.keys[key] = k
	}
	p := &Place{shared: s, key: key, since: since}
	if len(k.waiting) == 0 && s.free > 0 && s.mayUse(key, k) {
		p.given = true
		s.assign(key, k)
		return p
	}
	p.turn = make(chan struct{})
	at := len(k.waiting)
	for at > 0 && k.waiting[at-1].since.After(since) {
		at--
	}
	k.waiting = slices.Insert(k.waiting, at, p)
	s.serve() // other keys may have been active until a moment ago
	return p
}

// withdraw removes a caller that no longer waits. It returns true if the caller has got a turn meanwhile.
func (s *Shared) withdraw(p *Place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.given {
		return true
	}
	k := s.keys[p.key]
	k.waiting = slices.DeleteFunc(k.waiting, func(other *Place) bool { return other == p })
	s.changed(p.key)
	return false
}

// mayUse reports whether a key may get one more turn.
func (s *Shared) mayUse(key string, k *keyTurns) bool {
	used := k.using + k.resting
	return used < s.turns && (used < s.each || used < s.most(key))
}

// most returns how many turns a key may use now.
func (s *Shared) most(key string) int {
	if s.each > 0 && s.others(key) {
		return min(s.each, s.turns)
	}
	return s.turns
}

// serve assigns the free turns.
func (s *Shared) serve() {
	for s.free > 0 {
		next, key := s.next()
		if next == nil {
			return
		}
		w := next.waiting[0]
		next.waiting = next.waiting[1:]
		w.given = true
		close(w.turn)
		s.assign(key, next)
		s.changed(key)
	}
}

// next returns the key that gets the next turn, nil if none waits for one that it may use.
func (s *Shared) next() (next *keyTurns, key string) {
	for name, k := range s.keys {
		if len(k.waiting) == 0 || !s.mayUse(name, k) {
			continue
		}
		if next == nil || k.using < next.using || k.using == next.using && k.served < next.served {
			next, key = k, name
		}
	}
	return next, key
}

func (s *Shared) assign(key string, k *keyTurns) {
	s.free--
	s.served++
	k.using++
	k.served = s.served
	if s.recent[0].key != key {
		s.recent[1] = s.recent[0]
	}
	s.recent[0] = lastTurn{key, time.Now()}
}

// changed notifies the callers of Backlog, and removes a key without turns.
func (s *Shared) changed(key string) {
	k := s.keys[key]
	if k == nil {
		return
	}
	k.fewer = slices.DeleteFunc(k.fewer, func(f fewerWaiter) bool {
		if exceeded(k.waiting, f.limit, f.longest) {
			return false
		}
		close(f.below)
		return true
	})
	if k.using == 0 && k.resting == 0 && len(k.waiting) == 0 {
		delete(s.keys, key)
	}
}
