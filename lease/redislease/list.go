package redislease

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-dev/signalbox/lease"
)

// batch is the COUNT of one SCAN, and the maximum number of entries that one round trip reads.
const batch = 1000

// List implements [lease.Store.List] by SCAN on each master. The entries of each answer are read in one round trip,
// those that cannot be read so by scripts.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		nodes, err := s.masters(ctx)
		if err != nil {
			yield(lease.Entry{}, fmt.Errorf("list lease entries %q: %w", prefix, err))
			return
		}
		for _, node := range nodes {
			if more, err := s.listNode(ctx, node, prefix, yield); err != nil {
				yield(lease.Entry{}, fmt.Errorf("list lease entries %q: %w", prefix, err))
				return
			} else if !more {
				return
			}
		}
	}
}

// masters returns the master nodes.
func (s *Store) masters(ctx context.Context) ([]redis.Cmdable, error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return []redis.Cmdable{s.client}, nil
	}
	var mu sync.Mutex
	var nodes []redis.Cmdable
	err := cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	})
	return nodes, err
}

// listNode yields the entries of one server. more is false if the consumer has stopped.
func (s *Store) listNode(ctx context.Context, node redis.Cmdable, prefix string,
	yield func(lease.Entry, error) bool) (more bool, err error) {
	for cursor := uint64(0); ; {
		keys, next, err := node.Scan(ctx, cursor, escapePattern(s.prefix+prefix)+"*", batch).Result()
		if err != nil {
			return false, err
		}
		for start := 0; start < len(keys); start += batch {
			more, err := s.listKeys(ctx, node, keys[start:min(start+batch, len(keys))], yield)
			if err != nil || !more {
				return more, err
			}
		}
		if next == 0 {
			return true, nil
		}
		cursor = next
	}
}

// listKeys yields the entries of some keys. It needs one round trip if all can be read and none is written meanwhile.
func (s *Store) listKeys(ctx context.Context, node redis.Cmdable, keys []string,
	yield func(lease.Entry, error) bool) (more bool, err error) {
	if len(keys) == 0 {
		return true, nil
	}
	entries, others, err := s.readDirectly(ctx, node, keys)
	if err != nil {
		return false, err
	}
	for i := range entries {
		if !yield(entries[i], nil) {
			return false, nil
		}
	}
	return s.listByScript(ctx, node, others, yield)
}

// readDirectly reads entries without a script: the time, and then the fields of each. An entry is as it was at that
// time unless it was written since, which its revision shows. The keys in others must be read by the script: their
// entries were written meanwhile, cannot be read, were removed, or have moved to another node.
func (s *Store) readDirectly(ctx context.Context, node redis.Cmdable,
	keys []string) (entries []lease.Entry, others []string, err error) {
	pipe := node.Pipeline()
	now := pipe.Time(ctx)
	answers := make([]*redis.SliceCmd, len(keys))
	for i, key := range keys {
		answers[i] = pipe.HMGet(ctx, key, fieldNames()...)
	}
	_, _ = pipe.Exec(ctx) // each answer has its own error
	if err := now.Err(); err != nil {
		return nil, nil, err
	}
	entries = make([]lease.Entry, 0, len(keys))
	for i, full := range keys {
		found, err := answers[i].Result()
		if _, refused := errors.AsType[redis.Error](err); err != nil && !refused {
			return nil, nil, err
		}
		if entry, ok := parseFields(strings.TrimPrefix(full, s.prefix), now.Val(), found); ok {
			entries = append(entries, entry)
		} else {
			others = append(others, full)
		}
	}
	return entries, others, nil
}

// listByScript yields the entries of some keys, read by scripts. The first call has the script's text, so that the
// server has cached it for the others.
func (s *Store) listByScript(ctx context.Context, node redis.Cmdable, keys []string,
	yield func(lease.Entry, error) bool) (more bool, err error) {
	if len(keys) == 0 {
		return true, nil
	}
	pipe := node.Pipeline()
	answers := make([]*redis.Cmd, len(keys))
	for i, key := range keys {
		if i == 0 {
			answers[i] = pipe.Eval(ctx, s.read.text, []string{key})
		} else {
			answers[i] = pipe.EvalSha(ctx, s.read.Hash(), []string{key})
		}
	}
	_, _ = pipe.Exec(ctx) // each answer has its own error
	for i, full := range keys {
		key := strings.TrimPrefix(full, s.prefix)
		entry, err := s.parseListed(ctx, key, answers[i])
		var malformed *lease.MalformedError
		switch {
		case errors.Is(err, lease.ErrNotFound): // removed since the scan
			continue
		case err != nil && !errors.As(err, &malformed):
			return false, err
		}
		if !yield(entry, err) {
			return false, nil
		}
	}
	return true, nil
}

// parseListed returns the entry of a key from the answer of the scanned server.
func (s *Store) parseListed(ctx context.Context, key string, cmd *redis.Cmd) (lease.Entry, error) {
	if err := lease.CheckKey(key); err != nil {
		return lease.Entry{}, &lease.MalformedError{Key: key, Reason: err.Error()}
	}
	found, err := cmd.StringSlice()
	if _, refused := errors.AsType[redis.Error](err); refused {
		// The key has moved to another node, or the first one has and so the server did not cache the script.
		return s.Get(ctx, key)
	}
	if err != nil {
		return lease.Entry{}, err
	}
	return answer(found).read(key)
}

// escapePattern escapes the pattern characters of SCAN.
func escapePattern(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
