package workflowcmd

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// stdinName is the argument that means standard input.
const stdinName = "-"

// document is a workflow's source and where it came from.
type document struct {
	name   string
	file   string // empty: it was read from standard input
	source []byte
}

// readDocument reads one file, or standard input.
func readDocument(name string, stdin io.Reader) (document, error) {
	if name == stdinName {
		source, err := io.ReadAll(stdin)
		if err != nil {
			return document{}, fmt.Errorf("read the workflow from standard input: %w", err)
		}
		return document{name: "standard input", source: source}, nil
	}
	source, err := os.ReadFile(name)
	if err != nil {
		return document{}, exit.Errorf(exit.Failed, "read the workflow: %w", err)
	}
	return document{name: name, file: name, source: source}, nil
}

// workflowFiles resolves arguments: files as they are, folders to the YAML and JSON files in and below them. A file
// that was named is kept whatever its name; in folders, hidden files and folders are left out.
func workflowFiles(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case arg == stdinName:
			files = append(files, arg)
		case err != nil:
			return nil, exit.Errorf(exit.Failed, "read the workflow: %w", err)
		case !info.IsDir():
			files = append(files, arg)
		default:
			found, err := below(arg)
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				return nil, exit.Errorf(exit.Failed, "%q holds no workflow file (.yaml, .yml or .json)", arg)
			}
			files = append(files, found...)
		}
	}
	return files, nil
}

// functionName is the name of the files of functions in catalogs.
const functionName = "function"

// IsWorkflowFile reports whether a file in a folder is one of a workflow, by its name.
func IsWorkflowFile(path string) bool {
	base := filepath.Base(path)
	return !hidden(path) && strings.TrimSuffix(base, filepath.Ext(base)) != functionName && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path))
}

func hidden(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") }

func below(folder string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && path != folder && hidden(path):
			return filepath.SkipDir
		case !entry.IsDir() && IsWorkflowFile(path):
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("search for workflows: %w", err)
	}
	return found, nil
}
