package redislease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// hintBuffer is the number of keys buffered for a slow reader.
	hintBuffer = 256
	// refusalTimeout is how long to wait for Redis to refuse the subscription; it may be unavailable, or hang.
	refusalTimeout = time.Second
)

// Watch implements [lease.Store.Watch]. After each loss of the connection, and if Redis is unavailable at first, the
// client subscribes again by itself; changes in between are missing. An error means that Redis refused the
// subscription.
func (s *Store) Watch(ctx context.Context) (<-chan string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	subscription := s.client.Subscribe(ctx, s.channel())
	_, err := subscription.ReceiveTimeout(ctx, refusalTimeout)
	if _, refused := errors.AsType[redis.Error](err); refused {
		return nil, errors.Join(fmt.Errorf("watch lease entries: %w", err), subscription.Close())
	}
	keys := make(chan string, hintBuffer)
	go func() {
		defer close(keys)
		messages := subscription.Channel()
		defer subscription.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case m, open := <-messages:
				if !open { // the client was closed
					return
				}
				select {
				case keys <- m.Payload:
				default: // too slow to read
				}
			}
		}
	}()
	return keys, nil
}
