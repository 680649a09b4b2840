package pages

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/hygiene"
)

// Titles compares the titles in the first column of the table of errors of a page with those that the code of the
// folders gives to errors of runs.
func Titles(page string, folders []string) ([]hygiene.Violation, error) {
	given, err := givenTitles(folders)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, fmt.Errorf("read the page of errors: %w", err)
	}
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| ([A-Z][^|]+?) \\| `?(?:[a-z]+`|https)").
		FindAllStringSubmatch(string(text), -1) {
		for title := range strings.SplitSeq(row[1], ", ") {
			listed[title] = true
		}
	}
	var violations []hygiene.Violation
	for _, title := range slices.Sorted(maps.Keys(given)) {
		if !listed[title] {
			violations = append(violations,
				hygiene.Violation{Where: filepath.Base(page),
					What: fmt.Sprintf("does not have the title %q of %s", title, given[title])})
		}
	}
	for _, title := range slices.Sorted(maps.Keys(listed)) {
		if given[title] == "" {
			violations = append(violations,
				hygiene.Violation{Where: filepath.Base(page), What: fmt.Sprintf("has the title %q, which no error has", title)})
		}
	}
	return violations, nil
}

// givenTitles returns the titles in the code of folders, each with a file that gives it.
func givenTitles(folders []string) (map[string]string, error) {
	// The ways in which the code gives an error its title: a member of a literal, an assignment, and the functions that
	// make errors.
	giving := regexp.MustCompile(
		`Title: "|[Tt]itle :?= .*"|\bfailure\(|communicationError\(|undeliverable\(|return http\.Status\w+, "|` +
			`\{dsl\.ErrorType\w+, "`)
	title := regexp.MustCompile(`"([A-Z][A-Za-z]+(?: [a-zA-Z]+)*)"`)
	given := map[string]string{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return nil, fmt.Errorf("list the code of %q: %w", folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			code, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("read code: %w", err)
			}
			for line := range strings.Lines(string(code)) {
				if match := title.FindStringSubmatch(line); match != nil && giving.MatchString(line) {
					given[match[1]] = filepath.ToSlash(file)
				}
			}
		}
	}
	return given, nil
}
