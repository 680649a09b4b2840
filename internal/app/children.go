package app

import (
	"github.com/signalbox-dev/signalbox/internal/run/child"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

// childParts holds the parts that start child runs and notify parents of completion.
type childParts struct {
	service *child.Service
	watch   *child.Watcher
}

// newChildParts creates them. Each process notifies parents of the run ends that it writes; one elected process scans for missed ones.
func (a *App) newChildParts(runs *control.Service) *childParts {
	c := &childParts{
		service: child.New(runs, a.store, child.Options{MaxDepth: a.cfg.Runs.MaxDepth}),
		watch:   child.NewWatcher(a.store.Awaited(), a.store, runs, a.engine, a.store.Exclusive),
	}
	a.add(step{c.watch, false})
	return c
}
