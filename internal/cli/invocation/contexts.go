package invocation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/signalbox-dev/signalbox/internal/config"
)

// Context is one server, and the project meant there.
type Context struct {
	Address string `json:"address" yaml:"address"`
	Project string `json:"project,omitempty" yaml:"project,omitempty"`
	// Files, by absolute path: of the token to call with, of the authorities to trust, and of a client certificate and its
	// key.
	TokenFile string `json:"tokenFile,omitempty" yaml:"token_file,omitempty"`
	CAFile    string `json:"caFile,omitempty" yaml:"ca_file,omitempty"`
	CertFile  string `json:"certFile,omitempty" yaml:"cert_file,omitempty"`
	KeyFile   string `json:"keyFile,omitempty" yaml:"key_file,omitempty"`
}

// ContextFile has the named servers of the user.
//
// The file is YAML at $XDG_CONFIG_HOME/signalbox/config.yaml, or ~/.config/signalbox/config.yaml, and readable by its
// owner only:
//
//	current: production
//	contexts:
//	  production: {address: https://signalbox.example, project: orders, token_file: /home/ada/.signalbox-token}
//
// It holds no secrets: a token is in a file of its own. A missing file is an empty one.
type ContextFile struct {
	Current  string             `yaml:"current,omitempty"`
	Contexts map[string]Context `yaml:"contexts,omitempty"`
}

// ContextsPath returns where the file is, or "" where the environment names no home.
func ContextsPath(env config.Environment) string {
	if base := env["XDG_CONFIG_HOME"]; base != "" {
		return filepath.Join(base, "signalbox", "config.yaml")
	}
	if home := env["HOME"]; home != "" {
		return filepath.Join(home, ".config", "signalbox", "config.yaml")
	}
	if profile := env["AppData"]; profile != "" {
		return filepath.Join(profile, "signalbox", "config.yaml")
	}
	return ""
}

// LoadContexts reads the file.
func LoadContexts(path string) (ContextFile, error) {
	if path == "" {
		return ContextFile{}, nil
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ContextFile{}, nil
	}
	if err != nil {
		return ContextFile{}, fmt.Errorf("read the contexts: %w", err)
	}
	var file ContextFile
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return ContextFile{}, fmt.Errorf("read the contexts in %s: %s; correct or remove the file", path, oneLine(err))
	}
	return file, nil
}

// oneLine writes the parser's list of faults, which has a heading and a line for each, on one line.
func oneLine(err error) string {
	if list, ok := errors.AsType[*yaml.TypeError](err); ok {
		return strings.Join(list.Errors, "; ")
	}
	return err.Error()
}

// Save writes the file in one step: a reader sees the old or the new content, never half of it.
func (f ContextFile) Save(path string) error {
	if path == "" {
		return errors.New("save the contexts: neither XDG_CONFIG_HOME nor HOME is set, so their path is unknown")
	}
	content, err := yaml.Marshal(f)
	if err != nil {
		return fmt.Errorf("save the contexts: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("save the contexts: %w", err)
	}
	const private = 0o600
	if err := WriteFile(path, content, private); err != nil {
		return fmt.Errorf("save the contexts: %w", err)
	}
	return nil
}

// Names returns the contexts' names in order.
func (f ContextFile) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }
