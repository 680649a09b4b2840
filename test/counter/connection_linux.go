package counter

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Connections counts the established TCP connections that a process has to a port of the loopback interface.
func Connections(pid, port int) (int, error) {
	sockets, err := socketsOf(pid)
	if err != nil {
		return 0, err
	}
	count := 0
	for _, family := range []string{"tcp", "tcp6"} {
		n, err := established(fmt.Sprintf("/proc/%d/net/%s", pid, family), port, sockets)
		if err != nil {
			return 0, err
		}
		count += n
	}
	return count, nil
}

// socketsOf lists the inodes of a process's sockets.
func socketsOf(pid int) (map[string]bool, error) {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("list the open files of process %d: %w", pid, err)
	}
	sockets := map[string]bool{}
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(folder, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // closed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("read an open file of process %d: %w", pid, err)
		}
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return sockets, nil
}

// established counts the matching lines of a kernel table: local address, remote address, state 01, …, inode in column
// 10.
func established(table string, port int, sockets map[string]bool) (int, error) {
	file, err := os.Open(table)
	if err != nil {
		return 0, fmt.Errorf("read the connections: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	remote := fmt.Sprintf(":%04X", port)
	count := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[2], remote) && fields[3] == "01" && sockets[fields[9]] {
			count++
		}
	}
	return count, nil
}
