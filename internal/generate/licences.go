package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"slices"
	"strings"
)

// component is software of others, with the texts of its licence.
type component struct {
	name, version string
	// only is the program that contains it, if not all do.
	only  string
	texts []string
}

func (c component) String() string {
	line := strings.TrimSpace(c.name + " " + c.version)
	if c.only != "" {
		line += " (only in " + c.only + ")"
	}
	return line
}

// introduction and the titles of the two parts.
const (
	introduction = `Signalbox is licensed under the Apache License, Version 2.0. Its programs contain the software of others that is listed here, each under the
licence below its name.

`
	programsTitle = "Go modules in the programs signalbox and signalbox-server"
	studioTitle   = "Packages in Run Studio, the web UI"
)

// licenceTexts returns the licence texts of the software of others that the programs contain, for package notice,
// compressed by gzip. Root is the folder of the repository, whose packages of the web UI are installed. It is an error
// if a module or package has no text.
func licenceTexts(ctx context.Context, root string) ([]byte, error) {
	programs, err := modules(ctx, root)
	if err != nil {
		return nil, err
	}
	studio, err := packages(root)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write([]byte(
		introduction + render(programsTitle, programs) + render(studioTitle, studio))); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// render lists the components, and then their texts: each once, below the components that have it.
func render(title string, components []component) string {
	slices.SortFunc(components, func(a, b component) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.version, b.version))
	})
	var out strings.Builder
	line := strings.Repeat("=", 80)
	fmt.Fprintf(&out, "%s\n%s\n%s\n\n", line, title, line)
	var texts []string
	users := map[string][]string{}
	for _, c := range components {
		fmt.Fprintf(&out, "%s\n", c)
		for _, text := range c.texts {
			if users[text] == nil {
				texts = append(texts, text)
			}
			users[text] = append(users[text], c.String())
		}
	}
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), strings.Join(users[text], "\n"), text)
	}
	return out.String() + "\n"
}

// tidy returns a text with the line ends of Unix and without space at its end and at those of its lines.
func tidy(text string) string {
	lines := strings.Split(strings.ToValidUTF8(text, "\ufffd"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\r\f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
