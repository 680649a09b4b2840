package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/hygiene"
)

// Commands finds commands and flags in shell examples of the pages below root that the reference of the command line
// does not have.
func Commands(root, reference string) ([]hygiene.Finding, error) {
	sections, err := referenceSections(reference)
	if err != nil {
		return nil, err
	}
	return each(root, func(page, text string, find func(line int, problem string)) {
		if page == filepath.Clean(reference) {
			return
		}
		for i, line := range shell(text) {
			if problem := unknownCommand(line, sections); problem != "" {
				find(i+1, problem)
			}
		}
	})
}

// referenceSections reads the reference: the text under each heading that names a command, by its words.
func referenceSections(reference string) (map[string]string, error) {
	text, err := os.ReadFile(reference)
	if err != nil {
		return nil, fmt.Errorf("read the reference of the command line: %w", err)
	}
	sections := map[string]string{}
	command := ""
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " signalbox "); ok && line[0] == '#' {
			command = strings.TrimSpace(heading)
		}
		if command != "" {
			sections[command] += line
		}
	}
	return sections, nil
}

// shell is a page's lines with everything blanked out but its blocks of shell commands.
func shell(text string) []string {
	lines := strings.Split(text, "\n")
	inside := false
	for i, line := range lines {
		if strings.HasPrefix(line, "```") {
			inside = strings.TrimSpace(line) == "```sh"
			line = ""
		}
		if !inside {
			line = ""
		}
		lines[i] = line
	}
	return lines
}

func unknownCommand(line string, sections map[string]string) string {
	call := regexp.MustCompile(`^(?:\S*/)?signalbox(?:-server)? ([a-z-]+)(?: ([a-z][a-z-]*))?`).FindStringSubmatch(line)
	if call == nil {
		return ""
	}
	name := strings.TrimSpace(call[1] + " " + call[2])
	section, ok := sections[name]
	if !ok && !group(call[1], sections) {
		name = call[1]
		section, ok = sections[name]
	}
	if !ok {
		return fmt.Sprintf("runs %q, which the reference does not have", strings.TrimSpace(call[0]))
	}
	command, _, _ := strings.Cut(line, " #")
	for _, flag := range regexp.MustCompile(`\s(--[a-z-]+)`).FindAllStringSubmatch(command, -1) {
		if !regexp.MustCompile("[`, ]" + flag[1] + "[` ]").MatchString(section) {
			return fmt.Sprintf("gives %s to %q, which the reference does not have", flag[1], name)
		}
	}
	return ""
}

// group tells whether a word is only the first of commands' two words.
func group(word string, sections map[string]string) bool {
	for name := range sections {
		if strings.HasPrefix(name, word+" ") {
			return true
		}
	}
	return false
}
