package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// usage is where a metric is used: an alert, a recording rule, or a panel of a dashboard.
type usage struct {
	Text string
	// Runbook is the runbook's path below docs; empty without one.
	Runbook string
}

// ruleFile is the part of a file of Prometheus rules that matters here.
type ruleFile struct {
	Groups []struct {
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Alert  string `yaml:"alert"`
	Record string `yaml:"record"`
	Expr   string `yaml:"expr"`
}

// usages returns the usages of each metric in deploy, which may have no rules and no dashboards.
func usages(repository string) (map[string][]usage, error) {
	rules, err := readRules(filepath.Join(repository, "deploy", "prometheus"))
	if err != nil {
		return nil, err
	}
	recorded := map[string]string{}
	for _, r := range rules {
		if r.Record != "" {
			recorded[r.Record] = r.Expr
		}
	}
	used := map[string][]usage{}
	add := func(expression string, u usage) {
		for _, name := range metricsOf(expression, recorded) {
			if !slices.Contains(used[name], u) {
				used[name] = append(used[name], u)
			}
		}
	}
	for _, r := range rules {
		u := usage{Text: "rule `" + r.Record + "`"}
		if r.Alert != "" {
			u = usage{Text: "alert " + r.Alert}
			if _, err := os.Stat(filepath.Join(repository, "docs", "runbooks", r.Alert+".md")); err == nil {
				u.Runbook = "runbooks/" + r.Alert + ".md"
			}
		}
		add(r.Expr, u)
	}
	return used, addDashboards(filepath.Join(repository, "deploy", "grafana"), add)
}

// readRules reads the rules of all files in a folder; none if the folder does not exist.
func readRules(folder string) ([]rule, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []rule
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var file ruleFile
		if err := yaml.Unmarshal(content, &file); err != nil {
			continue // other files, such as tests of the rules and Prometheus's own, have another form
		}
		for _, g := range file.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all, nil
}

// panel is the part of a dashboard, of a row or of a panel that matters here.
type panel struct {
	Title   string `json:"title"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
	Panels []panel `json:"panels"`
}

// addDashboards adds the panels of all dashboards below a folder, if it exists.
func addDashboards(folder string, add func(expression string, u usage)) error {
	files := os.DirFS(folder)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		var board panel
		if err := json.Unmarshal(content, &board); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		addPanels(board.Title, board.Panels, add)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func addPanels(dashboard string, panels []panel, add func(expression string, u usage)) {
	for _, p := range panels {
		for _, target := range p.Targets {
			add(target.Expr, usage{Text: "panel " + dashboard + " / " + p.Title})
		}
		addPanels(dashboard, p.Panels, add)
	}
}

var (
	// notMetrics are the parts of an expression whose names are labels, functions or texts.
	notMetrics = regexp.MustCompile(
		`"(?:[^"\\]|\\.)*"|'[^']*'|\{[^}]*\}|\[[^\]]*\]|\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)|#[^\n]*`)
	// histogramSeries are the series of a histogram; each of ours has a unit.
	histogramSeries = regexp.MustCompile(`(_seconds|_bytes)_(bucket|sum|count)$`)
	names           = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
)

// metricsOf returns the metrics in an expression, and those of the recording rules that it uses, without the suffixes
// of histograms.
func metricsOf(expression string, recorded map[string]string) []string {
	var found []string
	for _, name := range names.FindAllString(notMetrics.ReplaceAllString(expression, " "), -1) {
		if expr, ok := recorded[name]; ok {
			found = append(found, metricsOf(expr, recorded)...)
			continue
		}
		if !strings.Contains(name, "_") || strings.Contains(name, ":") {
			continue
		}
		found = append(found, histogramSeries.ReplaceAllString(name, "$1"))
	}
	return found
}
