package app

import (
	"github.com/signalbox-dev/signalbox/internal/run/child"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

// children are the parts for runs that other runs start.
type children struct {
	service *child.Service
	watch   *child.Watch
}

// children makes them. Each process tells of the ends that it writes, and one of all looks for what others left untold.
func (a *App) children(runs *control.Service) *children {
	c := &children{
		service: child.New(runs, a.store, child.Options{MaxDepth: a.cfg.Runs.MaxDepth}),
		watch:   child.NewWatch(a.store.Awaited(), a.store, runs, a.engine, a.store.Exclusive),
	}
	a.then(step{c.watch, false})
	return c
}
