package program

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/sandbox/container"
	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
)

// sweepInterval is how often containers are looked for that nothing uses.
const sweepInterval = time.Minute

// Containers isolate programs by an engine of containers.
type Containers struct {
	Engine *container.Engine
	// Shell and Python are the images in which shell commands and scripts in Python are executed; empty: Commands of
	// [Options] execute them.
	Shell, Python string
}

// image returns the image in which the configuration wants a program to be executed.
func (c *Containers) image(r flow.ProgramRequest) string {
	switch {
	case c == nil || r.Kind == string(dsl.ProgramContainer):
		return ""
	case r.Kind == string(dsl.ProgramShell):
		return c.Shell
	}
	return c.Python
}

// run implements [sandbox].
func (c *Containers) run(ctx context.Context, r flow.ProgramRequest, printed *output.Streams) (int, error) {
	p := container.Program{
		Stdin: r.Stdin, Arguments: r.Arguments, Output: printed, Limits: r.Limits, Environment: map[string]string{"HOME": "/tmp"},
		Labels: map[string]string{
			"dev.signalbox.project": r.Project, "dev.signalbox.run": r.RunID, "dev.signalbox.program": r.Key,
		},
	}
	maps.Copy(p.Environment, environment(r))
	if wanted := r.Container; wanted != nil {
		p.Image, p.Pull, p.Name, p.Ports, p.Volumes = wanted.Image, wanted.PullPolicy, wanted.Name, wanted.Ports,
			wanted.Volumes
		p.Cleanup, p.After = wanted.Cleanup, wanted.After
		if r.Code != "" {
			p.Entrypoint = []string{shellProgram, "-c", r.Code, "sh"}
		}
	} else {
		line := command(r)
		p.Image, p.Trusted, p.Pull = c.image(r), true, container.PullIfNotPresent
		p.Cleanup, p.Entrypoint, p.Arguments = container.CleanupAlways, line[:1], line[1:]
	}
	code, err := c.Engine.Run(ctx, p)
	if refused, is := errors.AsType[*container.Refusal](err); is {
		return 0, &refusal{refused.Reason}
	}
	return code, err
}

// sweep removes the containers that nothing uses, now and then, until the executor stops.
func (e *Executor) sweep() {
	log := logger.FromContext(e.life)
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		if err := e.opts.Containers.Engine.Sweep(e.life); err != nil && e.life.Err() == nil {
			log.WarnContext(e.life, "Containers that are left cannot be removed", "error", err)
		}
		select {
		case <-ticker.C:
		case <-e.life.Done():
			return
		}
	}
}
