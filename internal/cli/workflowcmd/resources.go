package workflowcmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl"
)

// resolved is a parsed document with the files beside it that it refers to. What else it refers to is postponed: only
// servers read it.
type resolved struct {
	parsed     *dsl.Document
	violations dsl.Violations
	// files are the contents by path relative to the folder of the document.
	files map[string]string
	// postponed are the references to what is not a file.
	postponed []dsl.Reference
}

// resolve parses a document and reads the files that it refers to. A file outside the folder of the document is not
// read, also not through a link: a document from elsewhere must not send other files of this machine to a server.
func (d document) resolve() resolved { return d.resolveWith(nil) }

// resolveWith is resolve with the texts at some addresses.
func (d document) resolveWith(known map[string]string) resolved {
	out := resolved{files: map[string]string{}}
	resources := dsl.NewResources()
	for {
		out.parsed, out.violations = dsl.Parse(d.source, dsl.WithResources(resources))
		missing := resources.Missing()
		if len(missing) == 0 || len(out.files) > dsl.MaxResources {
			return out
		}
		for _, reference := range missing {
			if content, given := known[reference.URI]; given {
				resources.Add(reference.URI, []byte(content))
				continue
			}
			if reference.Kind != dsl.ReferenceFile {
				resources.Postpone(reference.URI)
				out.postponed = append(out.postponed, reference)
				continue
			}
			content, err := d.beside(reference.URI)
			if err != nil {
				resources.Fail(reference.URI, err)
				continue
			}
			out.files[reference.URI] = content
			resources.Add(reference.URI, []byte(content))
		}
	}
}

// FilesOf returns the files beside a document that it refers to, by path relative to its folder.
func FilesOf(file string, source []byte) map[string]string {
	return document{name: file, file: file, source: source}.resolve().files
}

// beside reads a file by its path relative to the folder of the document.
func (d document) beside(path string) (string, error) {
	if d.file == "" {
		return "", errors.New("a document from standard input has no folder: give its file instead")
	}
	root, err := os.OpenRoot(filepath.Dir(d.file))
	if err != nil {
		return "", fmt.Errorf("open the folder of the document: %w", err)
	}
	defer func() { _ = root.Close() }() // it was only read
	file, err := root.Open(filepath.FromSlash(path))
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, errors.New("it is not a file"))
	}
	content, err := io.ReadAll(io.LimitReader(file, dsl.MaxResourceBytes+1))
	switch {
	case err != nil:
		return "", err
	case len(content) > dsl.MaxResourceBytes:
		return "", fmt.Errorf("it has more than %d bytes", dsl.MaxResourceBytes)
	case !utf8.Valid(content):
		return "", errors.New("it is not a text in UTF-8")
	}
	return string(content), nil
}
