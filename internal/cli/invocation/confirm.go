package invocation

import (
	"bufio"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// Confirmation is the flag --yes of commands that delete something or end many runs. On a terminal they ask first; a
// script is not asked.
type Confirmation struct{ yes bool }

// Bind adds the flag.
func (c *Confirmation) Bind(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask for confirmation; only on a terminal is it asked for")
}

// Needed reports whether to ask.
func (c *Confirmation) Needed(s *Invocation) bool { return s.Interactive && !c.yes }

// Ask returns nil once the question is answered with yes, or if it need not be asked.
func (c *Confirmation) Ask(s *Invocation, question string) error {
	if !c.Needed(s) {
		return nil
	}
	if err := terminal.Draw(s.Err, question+" [y/N] "); err != nil {
		return err
	}
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	if err != nil {
		s.Note("") // the cursor is behind the question
	}
	if errors.Is(err, context.Canceled) {
		return exit.Errorf(exit.Interrupted, "interrupted; nothing was changed")
	}
	return exit.Errorf(exit.Failed, "not confirmed; nothing was changed")
}
