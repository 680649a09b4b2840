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
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
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
	source, err := invocation.ReadFile("workflow", name, stdin)
	if err != nil || name == stdinName {
		return document{name: "standard input", source: source}, err
	}
	return document{name: name, file: name, source: source}, nil
}

// workflowFiles resolves arguments: files as they are, folders to the workflow files in and below them. A file that was
// named is kept whatever its name; in folders, hidden files and folders are left out.
func workflowFiles(args []string) ([]string, error) { return filesOf(args, IsWorkflowFile) }

// filesOf resolves arguments as workflowFiles does, with the files in folders that are wanted.
func filesOf(args []string, wanted func(path string) bool) ([]string, error) {
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
			found, err := below(arg, wanted)
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

// IsWorkflowFile reports whether a file in a folder is one of a workflow, by its name. Files of tests and functions are
// not, and neither are descriptions of services such as openapi.yaml and shop.openapi.yaml.
func IsWorkflowFile(path string) bool {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	_, kind, _ := strings.Cut(name, ".")
	return isYAML(path) && !isTestFile(path) && name != functionName &&
		!slices.Contains(descriptionNames(), name) && !slices.Contains(descriptionNames(), kind)
}

// descriptionNames are the names of descriptions of services, or the parts of names before their extension.
func descriptionNames() []string { return []string{"openapi", "swagger"} }

// extensions are those of workflows and test files.
func extensions() []string { return []string{".yaml", ".yml", ".json"} }

func isYAML(path string) bool {
	return !hidden(path) && slices.Contains(extensions(), filepath.Ext(path))
}

// testSuffix is the part of the name of a test file before its extension.
const testSuffix = ".test"

func isTestFile(path string) bool {
	return isYAML(path) && strings.HasSuffix(strings.TrimSuffix(path, filepath.Ext(path)), testSuffix)
}

func hidden(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") }

// below returns the files in and below a folder that are wanted. Hidden folders are left out.
func below(folder string, wanted func(path string) bool) ([]string, error) {
	var found []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && path != folder && hidden(path):
			return filepath.SkipDir
		case !entry.IsDir() && wanted(path):
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("search for workflows: %w", err)
	}
	return found, nil
}
