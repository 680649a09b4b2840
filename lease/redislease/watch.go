package redislease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// hints is how many keys wait for a slow reader.
	hints = 256
	// confirm is how long a refusal is waited for; Redis may be away, or hung.
	confirm = time.Second
)

// Watch is [lease.Store.Watch]. The subscription is taken up again by itself whenever the connection broke, also where there is none
// at first; what changed meanwhile is missing. An error means that Redis refused it.
func (s *Store) Watch(ctx context.Context) (<-chan string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	subscription := s.client.Subscribe(ctx, s.channel())
	_, err := subscription.ReceiveTimeout(ctx, confirm)
	if _, refused := errors.AsType[redis.Error](err); refused {
		return nil, errors.Join(fmt.Errorf("watch lease entries: %w", err), subscription.Close())
	}
	keys := make(chan string, hints)
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
