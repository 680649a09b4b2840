// Package scenario holds the workflows of the recorded histories: together they leave every kind of event and command
// that the interpreter makes. The documents must not change, since a history names its document by hash; the address of
// the services they call is `base` of the input.
//
// A new interpreter adds recordings; it never changes a document here.
package scenario

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/test/origin"
)

//go:embed documents/*.yaml documents/files
var documents embed.FS

// Scenario is one recorded run.
type Scenario struct {
	Name   string
	Source string // the document
	Status string // the run's terminal status
	Cancel bool   // whether it is canceled while it waits
	Pause  bool   // whether it is paused while it waits, until the wait is over
	Since  int    // the first interpreter version that supports it
	// References reports whether the history refers to large values, which are recorded beside it.
	References bool
	// Files are what the document refers to, by path relative to it.
	Files map[string]string
	// Functions are those of the project that the document calls, by name:version.
	Functions map[string]string
	// Runners are the kinds of programs that the project executes, empty for those of the server.
	Runners string
}

// Large returns a text that is stored by reference, compressed or not.
func Large() string {
	var text strings.Builder
	for i := 0; text.Len() < 22_500; i++ {
		sum := sha256.Sum256([]byte(strconv.Itoa(i)))
		text.WriteString(base64.RawURLEncoding.EncodeToString(sum[:]))
	}
	return text.String()
}

// Services returns the answers of the services that the documents call, by method and path: one request after another,
// the last one also to all that follow.
func Services() map[string][]origin.Answer {
	return map[string][]origin.Answer{
		"GET /item":    {{Status: http.StatusOK, Body: `{"id":7}`}},
		"GET /large":   {{Status: http.StatusOK, Body: `{"text":"` + Large() + `"}`}},
		"POST /item":   {{Status: http.StatusCreated, Body: `{"id":8}`}},
		"GET /code":    {{Status: http.StatusOK, Body: `console.log(process.argv.slice(2).join("-"))`}},
		"PUT /flaky":   {{Status: http.StatusServiceUnavailable}, {Status: http.StatusServiceUnavailable}, {Status: http.StatusOK, Body: `{}`}},
		"GET /nothing": {{Status: http.StatusNotFound}},
		"GET /schema":  {{Status: http.StatusOK, Body: `{"type":"object","required":["base"]}`}},
	}
}

// Payload is a value that a recorded history refers to, sealed as in the database.
type Payload struct {
	Run    string `json:"run"`
	Digest string `json:"digest"`
	Value  []byte `json:"value"`
}

// PayloadsFile is the name of the file with the payloads of a recording.
const PayloadsFile = "payloads.json"

// All returns the scenarios by name.
func All() ([]Scenario, error) {
	files, err := readFiles()
	if err != nil {
		return nil, err
	}
	entries, err := documents.ReadDir("documents")
	if err != nil {
		return nil, fmt.Errorf("list the documents: %w", err)
	}
	var out []Scenario
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		source, err := documents.ReadFile(path.Join("documents", entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read document %q: %w", entry.Name(), err)
		}
		s := Scenario{Name: strings.TrimSuffix(entry.Name(), ".yaml"), Source: string(source), Status: "completed", Since: 1}
		switch s.Name {
		case "canceled":
			s.Status, s.Cancel = "canceled", true
		case "extensions", "language", "outside", "programs", "schemas":
			s.Since = 2
		case "commands":
			s.Since, s.Runners = 2, "script,shell,container"
		case "functions":
			s.Since, s.Files = 2, files
			s.Functions = map[string]string{"triple:1.0.0": files["files/functions/triple-1.0.0.yaml"]}
		case "openapi":
			s.Since, s.Files = 2, files
		case "paused":
			s.Pause = true
		case "references":
			s.References = true
		case "failed":
			s.Status = "failed"
		case "timed-out":
			s.Status = "timed_out"
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Scenario) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// readFiles returns the files that documents refer to.
func readFiles() (map[string]string, error) {
	out := map[string]string{}
	err := fs.WalkDir(documents, "documents/files", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := documents.ReadFile(name)
		out[strings.TrimPrefix(name, "documents/")] = string(content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the files: %w", err)
	}
	return out, nil
}

// Document parses the document of a scenario.
func (s Scenario) Document() (*dsl.Document, error) {
	resources := dsl.NewResources()
	for uri, content := range s.Files {
		resources.Add(uri, []byte(content))
	}
	for name, content := range s.Functions {
		resources.Add(name+"@default", []byte(content))
	}
	doc, violations := dsl.Parse([]byte(s.Source), dsl.WithResources(resources))
	if violations.HasErrors() {
		return nil, violations
	}
	return doc, nil
}
