package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed supplements
var supplements embed.FS

// supplement names the texts of components that are published without one: files of the folder supplements, or apache
// for the licence that this repository has, too.
func supplement(name string) []string {
	switch name {
	case "@bufbuild/protobuf":
		return []string{apache, "protobuf-es.txt"}
	case "@connectrpc/connect", "@connectrpc/connect-web":
		return []string{apache}
	case "react-remove-scroll-bar":
		return []string{"react-remove-scroll-bar.txt"}
	case "github.com/cactus/go-statsd-client/statsd": // the text is above the folder of the module
		return []string{"go-statsd-client.txt"}
	case "github.com/nexus-rpc/nexus-proto-annotations":
		return []string{"nexus-proto-annotations.txt"}
	case "quickjs-wasi (QuickJS-ng)":
		return []string{"quickjs-wasi.txt", "quickjs-ng.txt"}
	default:
		return nil
	}
}

const apache = "LICENSE"

// ours is the prefix of our own modules.
const ours = "github.com/signalbox-dev/signalbox"

// modules returns the Go modules of both programs for Linux, and the standard library.
func modules(ctx context.Context, root string) ([]component, error) {
	found := map[string]component{}
	folders := map[string]map[string]bool{} // of licence texts, by module
	for _, module := range []string{".", "devserver"} {
		packages, err := linked(ctx, filepath.Join(root, module))
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			m := p.Module
			if m == nil || m.Path == ours || strings.HasPrefix(m.Path, ours+"/") {
				continue
			}
			if _, known := found[m.Path]; !known {
				c := component{name: m.Path, version: m.Version}
				if module != "." {
					c.only = "signalbox"
				}
				found[m.Path], folders[m.Path] = c, map[string]bool{}
			}
			for folder := p.Dir; strings.HasPrefix(folder, m.Dir); folder = filepath.Dir(folder) {
				folders[m.Path][folder] = true
			}
		}
	}
	for name, c := range found {
		var err error
		if c.texts, err = licencesOf(root, name, slices.Sorted(maps.Keys(folders[name]))); err != nil {
			return nil, err
		}
		found[name] = c
	}
	sandbox, err := embedded(root)
	if err != nil {
		return nil, err
	}
	std := found["golang.org/x/sys"] // of the same authors, under the same licence
	std.name, std.version = "Go standard library", ""
	return append(slices.Collect(maps.Values(found)), std, sandbox), nil
}

// embedded returns the file of others that package javascript embeds. Its version is that of scripts/quickjs.sh.
func embedded(root string) (component, error) {
	const name = "quickjs-wasi (QuickJS-ng)"
	script, err := os.ReadFile(filepath.Join(root, "scripts", "quickjs.sh"))
	if err != nil {
		return component{}, err
	}
	version := regexp.MustCompile(`(?m)^version=(\S+)$`).FindSubmatch(script)
	if version == nil {
		return component{}, errors.New("scripts/quickjs.sh has no line version=…")
	}
	texts, err := licencesOf(root, name, nil)
	return component{name: name, version: string(version[1]), texts: texts}, err
}

// listed is a package as go list prints it.
type listed struct {
	Dir    string `json:"Dir"`
	Module *struct {
		Path    string `json:"Path"`
		Version string `json:"Version"`
		Dir     string `json:"Dir"`
	} `json:"Module"`
}

// linked returns the packages of the program in a module.
func linked(ctx context.Context, dir string) ([]listed, error) {
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Dir,Module", "./cmd/signalbox")
	list.Dir = dir
	list.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	var messages bytes.Buffer
	list.Stderr = &messages
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of %q: %w: %s", dir, err, strings.TrimSpace(messages.String()))
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read what go list printed: %w", err)
		}
		all = append(all, p)
	}
}

// packages returns the packages of the web UI, which must be installed.
func packages(root string) ([]component, error) {
	all, err := studio(root)
	if err != nil {
		return nil, err
	}
	for i, c := range all {
		if all[i].texts, err = licencesOf(root, c.name,
			[]string{filepath.Join(root, "ui/node_modules", c.name)}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// studio returns the packages of the web UI as its list of licences names them, without their texts.
func studio(root string) ([]component, error) {
	page, err := os.ReadFile(filepath.Join(root, "ui/LICENCES.md"))
	if err != nil {
		return nil, err
	}
	var all []component
	for _, row := range regexp.MustCompile(`(?m)^\| (\S+) \| (\d\S*) \|`).FindAllStringSubmatch(string(page), -1) {
		all = append(all, component{name: row[1], version: row[2]})
	}
	return all, nil
}

// licencesOf returns the texts of the licence files in folders, or the supplements of a component without a licence.
func licencesOf(root, name string, folders []string) ([]string, error) {
	var all []string
	licensed := false
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, fmt.Errorf("the licence of %s: %w; install the packages by `make generate`", name, err)
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !isLicence(e.Name()) {
				continue
			}
			content, err := os.ReadFile(filepath.Join(folder, e.Name()))
			if err != nil {
				return nil, err
			}
			licensed = licensed || grants(e.Name())
			if text := tidy(string(content)); !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	if licensed {
		return all, nil
	}
	for _, file := range supplement(name) {
		content, err := supplements.ReadFile("supplements/" + file)
		if file == apache {
			content, err = os.ReadFile(filepath.Join(root, apache))
		}
		if err != nil {
			return nil, err
		}
		all = append(all, tidy(string(content)))
		licensed = true
	}
	if !licensed {
		return nil, fmt.Errorf("%s has no licence text; add one to the folder supplements", name)
	}
	return all, nil
}

// isLicence reports whether a file has the text of a licence, or a notice that must be kept.
func isLicence(file string) bool {
	return regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|copyright|notice|patents)([-_.].*)?$`).MatchString(file) &&
		filepath.Ext(file) != ".go"
}

// grants reports whether a file is the licence itself.
func grants(file string) bool {
	return regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)`).MatchString(file)
}
