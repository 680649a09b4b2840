package pages

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/hygiene"
)

// keys returns the keys of the configuration reference, and their sections.
func keys(reference string) (keys, sections []string, err error) {
	text, err := os.ReadFile(reference)
	if err != nil {
		return nil, nil, fmt.Errorf("read the reference of the configuration: %w", err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		keys = append(keys, row[1])
		section, _, _ := strings.Cut(row[1], ".")
		if !slices.Contains(sections, section) {
			sections = append(sections, section)
		}
	}
	return keys, sections, nil
}

// Settings finds settings in the text of the pages below root that the configuration reference does not have. A setting
// is inline code that begins with a section and a dot; others of that form are exempt.
func Settings(root, reference string, others ...string) ([]hygiene.Violation, error) {
	known, sections, err := keys(reference)
	if err != nil {
		return nil, err
	}
	sections = slices.DeleteFunc(sections, func(section string) bool { return slices.Contains(known, section) })
	setting := regexp.MustCompile("`((?:" + strings.Join(sections, "|") + `)\.[a-z_]+(?:\.[a-z_]+)*)[:` + "`]")
	return each(root, func(_, text string, find func(line int, violation string)) {
		for i, line := range strings.Split(text, "\n") {
			for _, match := range setting.FindAllStringSubmatch(line, -1) {
				name := match[1]
				if !slices.Contains(others, name) && !slices.ContainsFunc(known, func(key string) bool {
					return key == name || strings.HasPrefix(key, name+".")
				}) {
					find(i+1, fmt.Sprintf("names the setting %q, which the reference does not have", name))
				}
			}
		}
	})
}

// Configurations finds YAML blocks in the pages below root in which check finds violations. A block is a configuration
// if each key at its top level is a section of the configuration reference, or a key.
func Configurations(root, reference string, check func(source string) []string) ([]hygiene.Violation, error) {
	_, sections, err := keys(reference)
	if err != nil {
		return nil, err
	}
	top := regexp.MustCompile(`(?m)^([a-z_]+):`)
	return each(root, func(_, text string, find func(line int, violation string)) {
		for _, block := range blocks(text) {
			names := top.FindAllStringSubmatch(block.source, -1)
			if len(names) == 0 || slices.ContainsFunc(names, func(name []string) bool {
				return !slices.Contains(sections, name[1])
			}) {
				continue
			}
			for _, violation := range check(block.source) {
				find(block.line, "shows a configuration with a violation: "+violation)
			}
		}
	})
}
