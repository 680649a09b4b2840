package dev

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/fsnotify/fsnotify"

	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/cli/workflowcmd"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// quiet is how long no event of a file must have arrived before it is read: editors write a file in several steps.
const quiet = 150 * time.Millisecond

// watcher follows workflow files. Folders are watched, not files: editors replace a file by another one of the same
// name.
type watcher struct {
	events  *fsnotify.Watcher   // nil: nothing is watched
	files   map[string]bool     // the files that were named
	folders []string            // the folders that were named
	handled map[string][32]byte // the content of each file as it was last handled
}

// newWatcher watches files, and the workflow files in and below folders.
func newWatcher(paths []string) (w *watcher, err error) {
	w = &watcher{files: map[string]bool{}, handled: map[string][32]byte{}}
	if len(paths) == 0 {
		return w, nil
	}
	if w.events, err = fsnotify.NewWatcher(); err != nil {
		return nil, fmt.Errorf("--watch: %w", err)
	}
	for _, path := range paths {
		if err := w.add(filepath.Clean(path)); err != nil {
			return nil, errors.Join(fmt.Errorf("--watch: %w", err), w.close())
		}
	}
	return w, nil
}

func (w *watcher) add(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		w.folders = append(w.folders, path)
		_, err = w.folder(path)
		return err
	}
	w.files[path] = true
	return w.events.Add(filepath.Dir(path))
}

// folder watches a folder with those below it, and returns the workflow files in them. Hidden folders are left out.
func (w *watcher) folder(folder string) (files []string, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != folder:
			return nil // removed meanwhile
		case err != nil:
			return err
		case !entry.IsDir() && workflowcmd.IsWorkflowFile(path):
			files = append(files, path)
		case entry.IsDir() && path != folder && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case entry.IsDir():
			return w.events.Add(path)
		}
		return nil
	})
	return files, err
}

// all handles every file that is new or has changed.
func (w *watcher) all(ctx context.Context, handle func(ctx context.Context, file string) error) {
	var found []string
	for _, folder := range w.folders {
		files, _ := w.folder(folder) // a folder that has gone has no files
		found = append(found, files...)
	}
	for file := range w.files {
		found = append(found, file)
	}
	w.handle(ctx, found, handle)
}

// handle calls a function for each file whose content differs from what was handled before. What the function writes
// into the file is handled.
func (w *watcher) handle(ctx context.Context, files []string, handle func(ctx context.Context, file string) error) {
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		content, err := os.ReadFile(file)
		if err != nil { // removed; the version that was published stays
			delete(w.handled, file)
			continue
		}
		if sum, known := w.handled[file]; known && sum == sha256.Sum256(content) {
			continue
		}
		if err := handle(ctx, file); err != nil && connect.CodeOf(err) != connect.CodeUnknown {
			// the server has not published it; the same content is sent again when the file is written again
			delete(w.handled, file)
			continue
		}
		if content, err = os.ReadFile(file); err == nil {
			w.handled[file] = sha256.Sum256(content)
		}
	}
}

// follow handles files as they change, until ctx ends.
func (w *watcher) follow(ctx context.Context, handle func(ctx context.Context, file string) error) {
	if w.events == nil {
		<-ctx.Done()
		return
	}
	var changed []string
	due := time.NewTimer(quiet)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-w.events.Events:
			if files := w.concerned(event); len(files) > 0 {
				changed = append(changed, files...)
				due.Reset(quiet)
			}
		case <-w.events.Errors: //nolint:errcheck // events were lost: all files are read, which needs no reason
			w.all(ctx, handle)
		case <-due.C:
			w.handle(ctx, changed, handle)
			changed = nil
		}
	}
}

// concerned returns the workflow files that an event may have changed. A new folder is watched, too.
func (w *watcher) concerned(event fsnotify.Event) []string {
	path := filepath.Clean(event.Name)
	if event.Op == fsnotify.Chmod {
		return nil
	}
	if w.files[path] {
		return []string{path}
	}
	inFolder := slices.ContainsFunc(w.folders, func(folder string) bool {
		relative, err := filepath.Rel(folder, path)
		return err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
	})
	if !inFolder {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if strings.HasPrefix(filepath.Base(path), ".") {
			return nil
		}
		files, _ := w.folder(path) // one that has gone has no files
		return files
	}
	if workflowcmd.IsWorkflowFile(path) {
		return []string{path}
	}
	return nil
}

func (w *watcher) close() error {
	if w.events == nil {
		return nil
	}
	return w.events.Close()
}

// republisher returns a function that publishes a file and prints the result.
func republisher(api string, client *http.Client, out io.Writer) func(ctx context.Context, file string) error {
	workflows := signalboxv1connect.NewWorkflowServiceClient(client, api)
	return func(ctx context.Context, file string) error {
		response, err := workflowcmd.PublishFile(ctx, workflows, project.Default, file)
		at := time.Now().Format(time.TimeOnly)
		if err != nil {
			_ = terminal.Draw(out, fmt.Sprintf("%s error: %v\n", at, err)) // a closed terminal must not stop the platform
			return err
		}
		state := "published"
		if !response.GetCreated() {
			state = "unchanged"
		}
		line := fmt.Sprintf("%s %s %s@%s (%s)\n", at, state, response.GetWorkflow().GetName(),
			response.GetVersion().GetVersion(), file)
		_ = terminal.Draw(out, line) // as above
		return nil
	}
}
