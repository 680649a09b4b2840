package event_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
)

const shop = "shop"

// slow is a store that only assigns positions, and whose commits take a second.
type slow struct {
	event.Store
	mu      sync.Mutex
	groups  [][]string // IDs of the events of each commit
	head    int64
	wake    bool
	refuses func(e event.Event) error
}

func (s *slow) Publish(_ context.Context, _ string, events []event.Event) ([]event.Accepted, bool, error) {
	<-time.After(time.Second) // of a bubble
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	var accepted []event.Accepted
	for i, e := range events {
		if s.refuses != nil {
			if err := s.refuses(e); err != nil {
				return nil, false, err
			}
		}
		ids = append(ids, e.ID)
		accepted = append(accepted, event.Accepted{Position: s.head + int64(i) + 1})
	}
	s.head += int64(len(events))
	s.groups = append(s.groups, ids)
	return accepted, s.wake, nil
}

func (s *slow) GetProject(_ context.Context, name string) (project.Project, error) {
	if name != shop && name != "other" {
		return project.Project{}, apperror.New(apperror.NotFound, apperror.ProjectNotFound, "project %q not found", name)
	}
	return project.Project{Name: name}, nil
}

// waker counts its calls; the first ones fail.
type waker struct {
	mu      sync.Mutex
	calls   int
	refuses int
	release chan struct{}
}

func (b *waker) Wake(context.Context, string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if b.calls <= b.refuses {
		return errors.New("temporal is unavailable")
	}
	if b.release != nil {
		b.mu.Unlock()
		<-b.release
		b.mu.Lock()
	}
	return nil
}

func (b *waker) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// serve starts a service and stops it with the test.
func serve(t *testing.T, s *slow, b *waker) (*event.Service, *pubsub.Notifier) {
	t.Helper()
	hints := pubsub.NewNotifier()
	service := event.NewService(s, s, hints, b, event.Options{Limits: event.DefaultLimits(), Now: time.Now})
	require.NoError(t, service.Start(t.Context()))
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, service.Stop(ctx)) })
	return service, hints
}

func numbered(ids ...string) []event.Event {
	out := make([]event.Event, len(ids))
	for i, id := range ids {
		out[i] = event.Event{ID: id, Source: "/s", Type: "t"}
	}
	return out
}

func TestPublishCommitsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		service, _ := serve(t, s, &waker{})
		var joined sync.WaitGroup
		begin := time.Now()
		for i := range 10 {
			joined.Go(func() {
				accepted, err := service.Publish(t.Context(), shop, numbered(fmt.Sprint(i, "a"), fmt.Sprint(i, "b")))
				require.NoError(t, err)
				require.Len(t, accepted, 2)
				require.Equal(t, accepted[0].Position+1, accepted[1].Position, "a request's events are consecutive")
			})
			synctest.Wait()
		}
		joined.Wait()
		require.Equal(t, 2*time.Second, time.Since(begin),
			"one transaction for the first request, one for all that arrived during it")
		require.Len(t, s.groups, 2)
		require.Equal(t, []string{"0a", "0b"}, s.groups[0])
		require.Equal(t, []string{"1a", "1b", "2a"}, s.groups[1][:3], "in order of arrival")
	})
}

func TestProjectsPublishInParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service, _ := serve(t, &slow{}, &waker{})
		var joined sync.WaitGroup
		begin := time.Now()
		for _, name := range []string{shop, "other"} {
			joined.Go(func() {
				_, err := service.Publish(t.Context(), name, numbered("1"))
				require.NoError(t, err)
			})
		}
		joined.Wait()
		require.Equal(t, time.Second, time.Since(begin))
	})
}

func TestPublishGroupsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		service, _ := serve(t, s, &waker{})
		var joined sync.WaitGroup
		for range 4 {
			joined.Go(func() {
				ids := make([]string, 600)
				for i := range ids {
					ids[i] = fmt.Sprint(i + 1)
				}
				_, err := service.Publish(t.Context(), shop, numbered(ids...))
				require.NoError(t, err)
			})
			synctest.Wait()
		}
		joined.Wait()
		for _, g := range s.groups {
			require.Len(t, g, 600, "two requests are more than a group")
		}
	})
}

// The other requests of the group are committed.
func TestRequestThatCannotBeStoredFailsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{refuses: func(e event.Event) error {
			if e.ID == "bad" {
				return errors.New("value too long for column")
			}
			return nil
		}}
		service, _ := serve(t, s, &waker{})
		var joined sync.WaitGroup
		for _, id := range []string{"first", "good", "bad", "fine"} {
			joined.Go(func() {
				_, err := service.Publish(t.Context(), shop, numbered(id))
				if id == "bad" {
					require.ErrorContains(t, err, "value too long for column")
					return
				}
				require.NoError(t, err)
			})
			synctest.Wait()
		}
		joined.Wait()
		require.Equal(t, [][]string{{"first"}, {"good"}, {"fine"}}, s.groups)
	})
}

// Every caller gets the error, and no request is tried alone.
func TestPublishFailsWhileStoreIsUnavailable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		s := &slow{refuses: func(event.Event) error {
			tries++
			return apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "the database is unavailable")
		}}
		service, _ := serve(t, s, &waker{})
		var joined sync.WaitGroup
		for i := range 5 {
			joined.Go(func() {
				_, err := service.Publish(t.Context(), shop, numbered(fmt.Sprint(i)))
				require.True(t, apperror.Is(err, apperror.StoreUnavailable), "%v", err)
			})
			synctest.Wait()
		}
		joined.Wait()
		require.Equal(t, 2, tries)
	})
}

func TestPublishCommitsAfterCallerCancels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		service, _ := serve(t, s, &waker{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var joined sync.WaitGroup
		joined.Go(func() {
			_, err := service.Publish(ctx, shop, numbered("left"))
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
		synctest.Wait()
		_, err := service.Publish(t.Context(), shop, numbered("stayed"))
		require.NoError(t, err)
		joined.Wait()
		require.Equal(t, [][]string{{"left"}, {"stayed"}}, s.groups)
	})
}

func TestPublishIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		service, _ := serve(t, s, &waker{})
		ids := make([]string, 1000)
		for i := range ids {
			ids[i] = fmt.Sprint(i + 1)
		}
		var joined sync.WaitGroup
		for range 20 {
			joined.Go(func() {
				_, err := service.Publish(t.Context(), shop, numbered(ids...))
				require.NoError(t, err)
			})
		}
		synctest.Wait()
		_, err := service.Publish(t.Context(), shop, numbered("one too many"))
		require.True(t, apperror.Is(err, apperror.StoreUnavailable), "%v", err)
		f, _ := apperror.From(err)
		require.Positive(t, f.RetryAfter)
		joined.Wait()
		_, err = service.Publish(t.Context(), shop, numbered("now"))
		require.NoError(t, err)
	})
}

func TestPublishAfterStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		service, _ := serve(t, s, &waker{})
		var joined sync.WaitGroup
		joined.Go(func() {
			_, err := service.Publish(t.Context(), shop, numbered("taken"))
			require.NoError(t, err)
		})
		synctest.Wait()
		require.NoError(t, service.Stop(t.Context()))
		require.Equal(t, [][]string{{"taken"}}, s.groups)
		_, err := service.Publish(t.Context(), shop, numbered("late"))
		require.True(t, apperror.Is(err, apperror.StoreUnavailable), "%v", err)
		joined.Wait()
	})
}

func TestPublishChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		service, _ := serve(t, s, &waker{})
		for says, give := range map[string]func() error{
			`project "none" not found`: func() error {
				_, err := service.Publish(t.Context(), "none", numbered("1"))
				return err
			},
			"id is required": func() error {
				_, err := service.Publish(t.Context(), shop, numbered(""))
				return err
			},
			"events[1].id is required": func() error {
				_, err := service.Publish(t.Context(), shop, numbered("1", " "))
				return err
			},
			"reserved for the platform's own": func() error {
				_, err := service.Publish(t.Context(), shop, []event.Event{{ID: "1", Source: "/s", Type: event.ScheduleFired}})
				return err
			},
			"more than the limit of 1000": func() error {
				_, err := service.Publish(t.Context(), shop, make([]event.Event, 1001))
				return err
			},
		} {
			require.ErrorContains(t, give(), says)
		}
		require.Empty(t, s.groups)
		_, err := event.Platform{
			Service: service}.Publish(t.Context(), shop, []event.Event{{ID: "1", Source: "/s", Type: event.ScheduleFired}})
		require.NoError(t, err)
		accepted, err := service.Publish(t.Context(), shop, nil)
		require.NoError(t, err)
		require.Empty(t, accepted)
	})
}

func TestPublishRecordsActorAndNotifiesProject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []event.Event
		s := &slow{refuses: func(e event.Event) error {
			got = append(got, e)
			return nil
		}}
		service, hints := serve(t, s, &waker{})
		hinted, end := hints.Subscribe(shop)
		defer end()
		other, endOther := hints.Subscribe("other")
		defer endOther()
		_, err := service.Publish(auth.WithActor(t.Context(), auth.Actor{Name: "ada"}), shop, numbered("1"))
		require.NoError(t, err)
		_, err = service.Publish(t.Context(), shop, numbered("2"))
		require.NoError(t, err)
		require.Equal(t, []string{"ada", "signalbox"}, []string{got[0].Actor, got[1].Actor})
		require.Equal(t, []any{shop, event.Pending}, []any{got[0].Project, got[0].Status})
		<-hinted
		select {
		case <-other:
			t.Fatal("another project is notified")
		default:
		}
	})
}

func TestPublishWakesParkedDispatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, b := &slow{}, &waker{refuses: 3}
		service, _ := serve(t, s, b)
		_, err := service.Publish(t.Context(), shop, numbered("awake"))
		require.NoError(t, err)
		synctest.Wait()
		require.Zero(t, b.count())

		s.wake = true
		begin := time.Now()
		_, err = service.Publish(t.Context(), shop, numbered("asleep"))
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(begin), "Publish does not wait for the waker")
		<-time.After(time.Minute)
		require.Equal(t, 4, b.count(), "called until it succeeds")
	})
}

// All requests that arrive during a call cause one more call.
func TestManyPublishesWakeOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, b := &slow{wake: true}, &waker{release: make(chan struct{})}
		service, _ := serve(t, s, b)
		for i := range 5 {
			_, err := service.Publish(t.Context(), shop, numbered(fmt.Sprint(i)))
			require.NoError(t, err)
		}
		close(b.release)
		synctest.Wait()
		require.Equal(t, 2, b.count())
	})
}

func TestWakeGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, b := &slow{wake: true}, &waker{refuses: 1000}
		service, _ := serve(t, s, b)
		_, err := service.Publish(t.Context(), shop, numbered("1"))
		require.NoError(t, err)
		<-time.After(time.Hour)
		require.Equal(t, 10, b.count(), "then the scan for parked dispatchers finds it")
		_, err = service.Publish(t.Context(), shop, numbered("2"))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 11, b.count())
		require.NoError(t, service.Stop(t.Context()), "Stop does not wait for the backoff")
	})
}
