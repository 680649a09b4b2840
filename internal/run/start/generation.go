package start

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// checkGeneration refuses a run that is too many starts away from one by a person or by the clock.
func (s *Service) checkGeneration(ctx context.Context, req Request) error {
	if s.opts.MaxGeneration == nil || req.Lineage.Generation == 0 {
		return nil
	}
	limit, err := s.opts.MaxGeneration(ctx, req.Project)
	if err != nil || req.Lineage.Generation <= limit {
		return err
	}
	return apperror.New(apperror.Refused, apperror.GenerationLimit,
		"the run would be %d starts away from one by a person or by the clock, and the limit of project %q is %d: "+
			"workflows start each other without end, or the limit is too low (runs.max_generation, or max_generation of the "+
			"project)", req.Lineage.Generation, req.Project, limit)
}
