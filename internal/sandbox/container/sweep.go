package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/sandbox/owner"
)

// Labels of containers.
const (
	// hostLabel is where the process runs that made the container: its host and its process namespace.
	hostLabel = "dev.signalbox.host"
	// ownerLabel is the process that made the container.
	ownerLabel = "dev.signalbox.owner"
	// cleanupLabel is when the container is removed, and afterLabel the delay in seconds.
	cleanupLabel = "dev.signalbox.cleanup"
	afterLabel   = "dev.signalbox.after"
	// deadlineLabel is when the program has ended in any case, in seconds since 1970.
	deadlineLabel = "dev.signalbox.deadline"
)

// deadlineGrace is how much later than its deadline a container counts as left.
const deadlineGrace = 5 * time.Minute

// labels returns the labels of a container.
func labels(ctx context.Context, p Program) map[string]string {
	all := map[string]string{
		hostLabel: host(), ownerLabel: owner.Name(), cleanupLabel: p.Cleanup,
		afterLabel: strconv.FormatInt(int64(p.After/time.Second), 10),
	}
	if deadline, bounded := ctx.Deadline(); bounded {
		all[deadlineLabel] = strconv.FormatInt(deadline.Unix(), 10)
	}
	maps.Copy(all, p.Labels)
	return all
}

// host returns a text for the host and the process namespace of this process.
func host() string {
	name, _ := os.Hostname()                         // empty in the worst case: the namespace is unique on a host
	namespace, _ := os.Readlink("/proc/self/ns/pid") // as above
	return name + " " + namespace
}

// Sweep removes the containers and sockets that processes which have ended left behind, and containers that were kept
// until now. A process on another host has ended if the deadline of its program is over.
func (e *Engine) Sweep(ctx context.Context) error {
	e.removeLeft()
	filters, err := json.Marshal(map[string][]string{"label": {ownerLabel}})
	if err != nil {
		return err
	}
	var list []struct {
		ID     string `json:"Id"`
		Labels map[string]string
		State  string
	}
	if err := e.call(ctx, http.MethodGet, "/containers/json", url.Values{"all": {"1"}, "filters": {string(filters)}}, nil,
		&list); err != nil {
		return err
	}
	var errs []error
	for _, c := range list {
		errs = append(errs, e.sweep(ctx, c.ID, c.Labels, c.State))
	}
	return errors.Join(errs...)
}

// sweep removes one container, if it is time.
func (e *Engine) sweep(ctx context.Context, id string, labels map[string]string, state string) error {
	const created, running = "created", "running"
	active := state == created || state == running // in use as long as its process runs
	gone := labels[hostLabel] == host() && owner.Gone(labels[ownerLabel])
	if deadline, err := strconv.ParseInt(labels[deadlineLabel], 10, 64); err == nil {
		gone = gone || time.Since(time.Unix(deadline, 0)) > deadlineGrace
	}
	switch cleanup := labels[cleanupLabel]; {
	case active && !gone:
		return nil
	case state == created:
		return e.remove(ctx, id)
	case active && cleanup != CleanupAlways:
		err := e.call(ctx, http.MethodPost, "/containers/"+id+"/stop", url.Values{"t": {stopSeconds}}, nil, nil)
		if statusOf(err) != 0 {
			return nil // it has ended in the meantime
		}
		return err
	case cleanup == CleanupAlways && gone:
		return e.remove(ctx, id)
	case cleanup == CleanupEventually:
		return e.removeLater(ctx, id, labels[afterLabel])
	}
	return nil
}

// removeLater removes a container whose program ended longer ago than a delay.
func (e *Engine) removeLater(ctx context.Context, id, after string) error {
	seconds, err := strconv.ParseInt(after, 10, 64)
	if err != nil {
		return fmt.Errorf("the label %s of the container %s is no number", afterLabel, id)
	}
	var inspected struct {
		State struct{ FinishedAt time.Time }
	}
	if err := e.call(ctx, http.MethodGet, "/containers/"+id+"/json", nil, nil, &inspected); err != nil {
		if statusOf(err) == http.StatusNotFound {
			return nil
		}
		return err
	}
	if time.Since(inspected.State.FinishedAt) < time.Duration(seconds)*time.Second {
		return nil
	}
	return e.remove(ctx, id)
}
