package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"

	"github.com/signalbox-dev/signalbox/internal/secretfile"
)

// files reads secrets from a folder: PROJECT/NAME. It never reads outside of the folder, whatever the names are and
// wherever links lead; links that stay within the folder, as Kubernetes makes them, are followed.
type files struct{ dir string }

func (f files) String() string { return "secrets.dir" }

func (f files) Resolve(_ context.Context, project, name string) (Value, error) {
	if !plainName(project) || !plainName(name) {
		return nil, fmt.Errorf("a file of the secret %q: %w", name, ErrMissing)
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of secrets.dir: %w", err)
	}
	defer func() { _ = root.Close() }() // read only
	file, err := root.Open(project + "/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("a file of the secret %q: %w", name, ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("open the file of the secret %q in secrets.dir: %w", name, err)
	}
	defer func() { _ = file.Close() }() // read only
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("the secret %q in secrets.dir is not a file", name)
	}
	if err := secretfile.Check(file, project+"/"+name); err != nil { // not its path: readers of runs see the error
		return nil, fmt.Errorf("read the secret %q in secrets.dir: %w", name, err)
	}
	content, err := io.ReadAll(io.LimitReader(file, MaxBytes+2))
	if err != nil {
		return nil, fmt.Errorf("read the file of the secret %q in secrets.dir: %w", name, err)
	}
	return trimmed(content), nil
}

// trimmed removes the line end that editors and programs add after a value.
func trimmed(content []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(content, []byte("\n")), []byte("\r"))
}

// plainName reports whether a name is one path element, and neither hidden nor an option of a program.
func plainName(name string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`).MatchString(name)
}
