// Command dashboards writes the Grafana dashboards of a Signalbox platform as JSON files into the folder named by its
// argument. It is not part of the product.
//
// Each dashboard is a function that returns its rows of panels. A panel declares what it shows, its unit, its runbooks
// and its limits; build.go makes the objects of the Grafana Foundation SDK from it, so that all panels follow the same
// rules: values that are not there are gaps or "unknown", states are texts beside their colours, and colours are those
// of palette.go.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 { //nolint:mnd // the program and one argument
		fmt.Fprintln(os.Stderr, "usage: dashboards FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// boards returns all dashboards.
func boards() []board { return []board{dispatchers(), connection(), runs(), platform()} }

// write writes each dashboard into a file of the folder.
func write(folder string) error {
	for _, b := range boards() {
		text, err := render(b)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, b.name+".json"), text,
			0o644); err != nil { //nolint:gosec // a public file
			return err
		}
	}
	return nil
}

// render returns the file of a dashboard.
func render(b board) ([]byte, error) {
	built, err := b.build()
	if err != nil {
		return nil, fmt.Errorf("build dashboard %q: %w", b.title, err)
	}
	plain, err := json.Marshal(built)
	if err != nil {
		return nil, err
	}
	var file map[string]any
	if err := json.Unmarshal(plain, &file); err != nil {
		return nil, err
	}
	for _, annotation := range annotations(file) {
		for key, format := range formats() {
			annotation[key] = format
		}
	}
	text, err := json.MarshalIndent(file, "", "  ")
	return append(text, '\n'), err
}

// formats are the texts of annotations from Prometheus, by their keys. The SDK has no fields for them.
func formats() map[string]string {
	return map[string]string{"titleFormat": "{{alertname}}", "textFormat": "{{severity}}", "tagKeys": "severity"}
}

// annotations returns the annotations of a dashboard's file.
func annotations(file map[string]any) (all []map[string]any) {
	kept, _ := file["annotations"].(map[string]any)
	list, _ := kept["list"].([]any)
	for _, each := range list {
		if annotation, ok := each.(map[string]any); ok {
			all = append(all, annotation)
		}
	}
	return all
}
