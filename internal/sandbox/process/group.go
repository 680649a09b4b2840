//go:build linux && (amd64 || arm64)

package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/owner"
)

const (
	// ownGroup is the control group into which this process moves: a group with groups in it has no processes.
	ownGroup = "signalbox-runner"
	// ownProcesses are the processes of bubblewrap itself.
	ownProcesses = 2
	// period is the period of the bound of processor time, in microseconds.
	period = 100_000
	// groupMode is the mode of the folders of control groups.
	groupMode = 0o755
	// removedWithin is how long the processes of a control group may take to end after they were killed.
	removedWithin = 5 * time.Second
)

// groups makes control groups, of version 1 or 2, below those of this process.
type groups struct {
	// folders has the folders that hold the groups of commands, by controller. Version 2 has one folder for all.
	folders map[string]string
	unified bool
}

// controllers are those that bound commands.
func controllers() []string { return []string{"memory", "pids", "cpu"} }

// openGroups finds the control groups of this process, and removes those of commands whose process has ended. Its error
// says why there are none.
func openGroups() (*groups, error) {
	mounts, err := groupMounts()
	if err != nil {
		return nil, err
	}
	paths, err := groupPaths()
	if err != nil {
		return nil, err
	}
	g := &groups{folders: map[string]string{}}
	for _, controller := range controllers() {
		if mount, found := mounts[controller]; found {
			g.folders[controller] = mount.folder(paths[controller])
		}
	}
	if len(g.folders) == 0 {
		mount, found := mounts[""]
		if !found {
			return nil, errors.New("no control groups are mounted")
		}
		g.unified = true
		folder := mount.folder(paths[""])
		if err := delegate(folder); err != nil {
			return nil, err
		}
		folder = strings.TrimSuffix(folder, "/"+ownGroup)
		for _, controller := range controllers() {
			g.folders[controller] = folder
		}
	}
	for _, needed := range controllers() {
		if g.folders[needed] == "" {
			return nil, fmt.Errorf("the control groups have no controller %s", needed)
		}
	}
	g.removeLeft()
	// The attempt shows whether this process may make groups.
	attempt, err := g.make(owner.Unique(), limit.Limits{Memory: 1 << 30, Processes: 1, Processors: 1})
	if err != nil {
		return nil, err
	}
	attempt.remove()
	return g, nil
}

// groupMount is where control groups are mounted, and which group is there.
type groupMount struct{ at, root string }

// folder returns the folder of a group.
func (m groupMount) folder(path string) string {
	return filepath.Join(m.at, strings.TrimPrefix(path, strings.TrimSuffix(m.root, "/")))
}

// groupMounts returns the mounts of control groups by controller; that of version 2 has an empty name.
func groupMounts() (map[string]groupMount, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was read
	mounts := map[string]groupMount{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		mount, filesystem := strings.Fields(before), strings.Fields(after)
		const fields, options = 5, 3
		if len(mount) < fields || len(filesystem) < options {
			continue
		}
		at := groupMount{at: mount[4], root: mount[3]}
		switch filesystem[0] {
		case "cgroup2":
			mounts[""] = at
		case "cgroup":
			for option := range strings.SplitSeq(filesystem[2], ",") {
				if slices.Contains(controllers(), option) {
					mounts[option] = at
				}
			}
		}
	}
	return mounts, nil
}

// groupPaths returns the groups of this process by controller; that of version 2 has an empty name.
func groupPaths() (map[string]string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for line := range strings.Lines(string(text)) {
		const fields = 3
		parts := strings.SplitN(strings.TrimSpace(line), ":", fields)
		if len(parts) < fields {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			paths[controller] = parts[2]
		}
	}
	return paths, nil
}

// delegate makes the controllers available to the groups in folder, the group of this process. It moves this process
// into a group of its own where the kernel demands it.
func delegate(folder string) error {
	if filepath.Base(folder) == ownGroup {
		return nil // an earlier sandbox of this process did so
	}
	enable := func() error {
		return write(filepath.Join(folder, "cgroup.subtree_control"), "+"+strings.Join(controllers(), " +"))
	}
	err := enable()
	if errors.Is(err, unix.EBUSY) {
		own := filepath.Join(folder, ownGroup)
		if err := os.Mkdir(own, groupMode); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("making control groups: %w", err)
		}
		if err := write(filepath.Join(own, "cgroup.procs"), strconv.Itoa(os.Getpid())); err != nil {
			return err
		}
		err = enable()
	}
	return err
}

func write(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		return fmt.Errorf("setting up control groups: %w", err)
	}
	return nil
}

// removeLeft removes the groups of commands of processes that have ended, with the processes in them.
func (g *groups) removeLeft() {
	for _, folder := range g.all() {
		for _, path := range owner.Left(folder) {
			(&group{folders: []string{path}}).remove()
		}
	}
}

// all returns the folders of groups, each once.
func (g *groups) all() []string {
	var list []string
	for _, controller := range controllers() {
		if folder := g.folders[controller]; !slices.Contains(list, folder) {
			list = append(list, folder)
		}
	}
	return list
}

// make makes a group with the limits of a command.
func (g *groups) make(name string, o limit.Limits) (*group, error) {
	made := &group{}
	for _, folder := range g.all() {
		path := filepath.Join(folder, name)
		if err := os.Mkdir(path, groupMode); err != nil {
			made.remove()
			return nil, fmt.Errorf("making a control group: %w", err)
		}
		made.folders = append(made.folders, path)
	}
	quota := int64(o.Processors * period)
	settings := map[string][][2]string{
		"memory": {{"memory.max", text(o.Memory)}, {"memory.swap.max", "0"}, {"memory.oom.group", "1"}},
		"pids":   {{"pids.max", text(o.Processes + ownProcesses)}},
		"cpu":    {{"cpu.max", fmt.Sprintf("%d %d", quota, period)}, {"cpu.weight", text(limit.Weight)}},
	}
	if !g.unified {
		settings["memory"] = [][2]string{
			{"memory.limit_in_bytes", text(o.Memory)}, {"memory.memsw.limit_in_bytes", text(o.Memory)},
		}
		settings["cpu"] = [][2]string{{"cpu.cfs_period_us", text(period)}, {"cpu.cfs_quota_us", text(quota)},
			{"cpu.shares", text(limit.Shares)}}
	}
	for controller, list := range settings {
		for _, setting := range list {
			err := write(filepath.Join(g.folders[controller], name, setting[0]), setting[1])
			// A kernel without the accounting of swap has no such file.
			if err != nil && !(errors.Is(err, os.ErrNotExist) && strings.Contains(setting[0], "sw")) {
				made.remove()
				return nil, err
			}
		}
	}
	return made, nil
}

func text[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// group is the control group of one command. nil has no processes.
type group struct{ folders []string }

// add moves a process into the group.
func (g *group) add(pid int) error {
	if g == nil {
		return nil
	}
	for _, folder := range g.folders {
		if err := write(filepath.Join(folder, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

// outOfMemory reports whether the kernel has killed a process of the group, because it exceeded its memory.
func (g *group) outOfMemory() bool {
	if g == nil {
		return false
	}
	for _, folder := range g.folders {
		for _, name := range []string{"memory.events", "memory.oom_control"} {
			content, _ := os.ReadFile(filepath.Join(folder, name)) // one of the versions has it
			for line := range strings.Lines(string(content)) {
				if count, found := strings.CutPrefix(line, "oom_kill "); found && strings.TrimSpace(count) != "0" {
					return true
				}
			}
		}
	}
	return false
}

// kill kills the processes of the group.
func (g *group) kill() {
	if g == nil {
		return
	}
	for _, folder := range g.folders {
		_ = os.WriteFile(filepath.Join(folder, "cgroup.kill"), []byte("1"), 0) // version 2 has it
		content, _ := os.ReadFile(filepath.Join(folder, "cgroup.procs"))       // without it there is nothing to kill
		for line := range strings.Lines(string(content)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 {
				_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
			}
		}
	}
}

// remove kills the processes of the group, and removes it. What remains is removed by the next process.
func (g *group) remove() {
	if g == nil {
		return
	}
	for deadline := time.Now().Add(removedWithin); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { //nolint:mnd // between two looks
		g.folders = slices.DeleteFunc(g.folders, func(folder string) bool {
			err := unix.Rmdir(folder)
			return err == nil || errors.Is(err, unix.ENOENT)
		})
		if len(g.folders) == 0 {
			return
		}
		g.kill()
	}
}
