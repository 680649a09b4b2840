package system

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

const (
	// maxRunnerQueues is of how many projects a status has the runners.
	maxRunnerQueues = 100
	// projectPage is the number of projects that are read at once.
	projectPage = 500
)

// readRunners reads the runners of the projects that permit programs into a status.
func (s *Service) readRunners(ctx context.Context, status *Status) {
	for after := ""; ; {
		page, err := s.opts.Projects(ctx, after, projectPage)
		if err != nil {
			status.RunnersError = publicError(ctx, err)
			break
		}
		for _, p := range page {
			if kinds := s.opts.Permitted(p); len(kinds) > 0 {
				status.Runners = append(status.Runners, RunnerQueue{Project: p.Name, Kinds: kinds, Error: parked(p)})
			}
		}
		if status.MoreRunners = len(status.Runners) > maxRunnerQueues; status.MoreRunners {
			status.Runners = status.Runners[:maxRunnerQueues]
			break
		}
		if len(page) < projectPage {
			break
		}
		after = page[len(page)-1].Name
	}
	var asking errgroup.Group
	asking.SetLimit(maxQueueReads)
	for i := range status.Runners {
		if status.Runners[i].Error != "" {
			continue // no runner polls for a parked project
		}
		asking.Go(func() error {
			s.describeRunners(ctx, &status.Runners[i])
			return nil
		})
	}
	_ = asking.Wait() // each has its own error
}

func (s *Service) describeRunners(ctx context.Context, q *RunnerQueue) {
	state, err := s.opts.Runners(ctx, q.Project)
	q.Name = state.Name
	if err != nil {
		q.Error = publicError(ctx, err)
		return
	}
	now := s.opts.Now()
	for _, p := range state.Pollers {
		q.Runners = append(q.Runners, Runner{ServerID: p.Identity, PolledAt: p.LastAccess, Polls: p.Polls(now),
			Isolations: p.Isolations})
	}
	slices.SortFunc(q.Runners, func(a, b Runner) int {
		if order := b.PolledAt.Compare(a.PolledAt); order != 0 {
			return order
		}
		return strings.Compare(a.ServerID, b.ServerID)
	})
}
