package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/hygiene"
)

// Commands finds commands and flags in the pages below root that the reference of the command line does not have: in
// blocks of shell commands, in blocks without a language, which may show a session with output, and in inline code.
func Commands(root, reference string) ([]hygiene.Violation, error) {
	sections, err := referenceSections(reference)
	if err != nil {
		return nil, err
	}
	return each(root, func(page, text string, find func(line int, violation string)) {
		if page == filepath.Clean(reference) {
			return
		}
		for i, commands := range typed(text) {
			for _, command := range commands {
				if violation := unknownCommand(command, sections); violation != "" {
					find(i+1, violation)
				}
			}
		}
	})
}

// referenceSections reads the reference: the text under each heading that names a command, by the command.
func referenceSections(reference string) (map[string]string, error) {
	text, err := os.ReadFile(reference)
	if err != nil {
		return nil, fmt.Errorf("read the reference of the command line: %w", err)
	}
	configuration, err := os.ReadFile(filepath.Join(filepath.Dir(reference), "configuration.md"))
	if err != nil {
		return nil, fmt.Errorf("read the reference of the configuration: %w", err)
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
		if strings.HasPrefix(line, "And a flag for each key of the [configuration]") {
			sections[command] += string(configuration)
		}
	}
	return sections, nil
}

// typed returns the commands in each line of a page: a line of a block, or inline code.
func typed(text string) [][]string {
	span := regexp.MustCompile("`([^`]+)`")
	lines := strings.Split(text, "\n")
	out := make([][]string, len(lines))
	fence := "" // of the block that the line is in
	for i, line := range lines {
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(trimmed, "```") && fence == "":
			fence = trimmed
		case strings.HasPrefix(trimmed, "```"):
			fence = ""
		case fence == "```sh" || fence == "```console" || fence == "```":
			out[i] = []string{strings.TrimPrefix(trimmed, "$ ")}
		case fence == "":
			for _, code := range span.FindAllStringSubmatch(line, -1) {
				out[i] = append(out[i], code[1])
			}
		}
	}
	return out
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
	if !ok && call[2] == "" && group(call[1], sections) {
		return "" // named as a whole
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

// group reports whether a word is only the first word of commands with two words.
func group(word string, sections map[string]string) bool {
	for name := range sections {
		if strings.HasPrefix(name, word+" ") {
			return true
		}
	}
	return false
}
