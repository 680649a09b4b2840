package procedures_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const page = "../../docs/operations.md"

// callsProgram matches what begins with a program that the pages call, or is a statement for psql. A name alone is not
// a command.
var callsProgram = regexp.MustCompile(
	`^(?:[A-Z_]+="?\$?\w+"? )?(?:signalbox|pg_dump|pg_restore|pg_basebackup|pg_ctlcluster|pg_archivecleanup|psql|redis-cli|` +
		`printf|install|runuser|mv|cp|rm|sed|export|curl|openssl|temporal|timedatectl|systemctl|ALTER|SELECT)\b(?: |$)`)

// names are programs that pages name without arguments.
var names = regexp.MustCompile(`^(?:signalbox|psql|pg_dump|pg_basebackup|pg_archivecleanup|signalbox migrate import)$`)

// notRun are the commands that no procedure runs, and why.
func notRun() map[string]string {
	return map[string]string{
		"signalbox dev temporal":  "the name of a program, which must not be used",
		"pg_dump --format=custom": "the name of a way; the command is in the block below",
		"timedatectl":             "it needs systemd and the system's bus",
		"temporal operator namespace describe -n NAMESPACE": "`make setup` does not install Temporal's own program",
	}
}

// section is a part of a page under one heading, with its commands in order.
type section struct {
	heading  string
	commands []string
	next     int // the index of the command that has to follow
}

func (s *section) String() string { return s.heading }

var (
	heading = regexp.MustCompile(`^#+ (.*)`)
	fence   = regexp.MustCompile("^ *```(\\w*)$")
	comment = regexp.MustCompile(` +# .*$`)
	inline  = regexp.MustCompile("`([^`]+)`")
)

// sections reads a page: the lines of its blocks of sh, and the code within its text that is a command.
func sections(t *testing.T) (list []*section) {
	t.Helper()
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	text, language, block := "", "", false
	flush := func() {
		for _, match := range inline.FindAllStringSubmatch(text, -1) {
			command := strings.ReplaceAll(strings.Join(strings.Fields(match[1]), " "), `\|`, "|")
			if callsProgram.MatchString(command) && !names.MatchString(command) {
				last := list[len(list)-1]
				last.commands = append(last.commands, command)
			}
		}
		text = ""
	}
	for line := range strings.Lines(strings.ReplaceAll(string(content), "\\\n", " ")) {
		line = strings.TrimRight(line, "\n")
		if match := fence.FindStringSubmatch(line); match != nil {
			flush()
			block, language = !block, match[1]
			continue
		}
		switch match := heading.FindStringSubmatch(line); {
		case block && language == "sh":
			if command := strings.TrimSpace(comment.ReplaceAllString(line, "")); command != "" &&
				!strings.HasPrefix(command, "#") {
				last := list[len(list)-1]
				last.commands = append(last.commands, command)
			}
		case !block && match != nil:
			flush()
			list = append(list, &section{heading: match[1]})
		case !block:
			text += line + "\n"
		}
	}
	flush()
	for _, s := range list {
		s.commands = slices.DeleteFunc(s.commands, func(command string) bool { return notRun()[command] != "" })
	}
	return slices.DeleteFunc(list, func(s *section) bool { return len(s.commands) == 0 })
}

// find returns a section of a page.
func find(t *testing.T, heading string) *section {
	t.Helper()
	for _, s := range sections(t) {
		if s.heading == heading {
			return s
		}
	}
	require.Fail(t, "no such section with commands", heading)
	return nil
}

// take returns the next command of the section, which must begin so, with the words replaced: each placeholder is
// followed by its value.
func (s *section) take(t *testing.T, begin string, words ...string) string {
	t.Helper()
	require.Less(t, s.next, len(s.commands), "%s has no further command, and the procedure expects %q", s, begin)
	command := s.commands[s.next]
	require.True(t, strings.HasPrefix(command, begin), "the next command of %s is %q, and the procedure expects %q", s,
		command, begin)
	s.next++
	return replace(command, words)
}

// replace replaces placeholders: words in capitals, or others as they are.
func replace(command string, words []string) string {
	for i := 0; i < len(words); i += 2 {
		if regexp.MustCompile(`^[A-Z]+$`).MatchString(words[i]) {
			command = regexp.MustCompile(`\b`+words[i]+`\b`).ReplaceAllLiteralString(command, words[i+1])
			continue
		}
		command = strings.ReplaceAll(command, words[i], words[i+1])
	}
	return command
}

// Each section with commands belongs to one procedure, and each command that is not run is still on a page.
func TestEverySectionHasAProcedure(t *testing.T) {
	t.Parallel()
	claimed := map[string]string{}
	for _, p := range procedures() {
		for _, name := range p.sections {
			require.Empty(t, claimed[name], "%s is in two procedures", name)
			claimed[name] = p.name
		}
	}
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	commands := 0
	for _, s := range sections(t) {
		require.NotEmpty(t, claimed[s.heading], "no procedure follows %s, which has the commands\n%s", s,
			strings.Join(s.commands, "\n"))
		delete(claimed, s.heading)
		commands += len(s.commands)
	}
	require.Empty(t, claimed, "sections that do not exist or have no commands")
	require.Greater(t, commands, 70)
	for command := range notRun() {
		require.Contains(t, string(content), "`"+command+"`", "the page does not have this command: delete the exception")
	}
}
