package redislease

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// hints is how many keys wait for a slow reader.
const hints = 256

// Watch is [lease.Store.Watch]. The subscription is taken up again by itself whenever the connection broke, also where there is none
// at first; what changed meanwhile is missing. An error means that Redis refused it.
func (s *Store) Watch(ctx context.Context) (<-chan string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	subscription := s.client.Subscribe(ctx, s.channel())
	var refused redis.Error
	if _, err := subscription.Receive(ctx); errors.As(err, &refused) {
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
