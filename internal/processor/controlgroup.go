package processor

import (
	"bufio"
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// ControlGroup is a control group of this process, or one above it.
type ControlGroup struct {
	// Version is 1 or 2.
	Version int
	// Folder has the group's files. It need not exist.
	Folder string
}

// ControlGroups returns the groups of this process that may have the controller, in versions 1 and 2, each followed by
// the groups above it, whose limits apply to it, too. root is the file system with /proc and /sys. It returns none
// where /proc/self/cgroup cannot be read.
func ControlGroups(root fs.FS, controller string) (all []ControlGroup) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	lines := bufio.NewScanner(bytes.NewReader(groups))
	for lines.Scan() {
		// hierarchy:controllers:path; version 2 has the hierarchy 0 and names no controllers
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		version, folder := 2, "sys/fs/cgroup"
		if parts[1] != "" {
			if !slices.Contains(strings.Split(parts[1], ","), controller) {
				continue
			}
			version, folder = 1, "sys/fs/cgroup/"+controller
		}
		// In a container the path may lead outside of the mounted tree; then the files in the mount's root apply.
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			all = append(all, ControlGroup{Version: version, Folder: path.Join(folder, at)})
			if at == "/" {
				break
			}
		}
	}
	return all
}
