package workflowcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/runcase"
)

// testFromRun prints a test file with a case that does what a run did.
func testFromRun(ctx context.Context, s *invocation.Invocation, source string) error {
	export, err := exportOf(ctx, s, source)
	if err != nil {
		return err
	}
	written, err := runcase.Write(export)
	switch {
	case errors.Is(err, runcase.ErrNoExport):
		return exit.Errorf(exit.Failed, "--from-run: %q: %w", source, err)
	case err != nil:
		return exit.Errorf(exit.Failed, "write a test of run %q: %w", source, err)
	}
	for _, missing := range written.Missing {
		s.Note("to complete: %s", missing)
	}
	for _, note := range written.Notes {
		s.Note("%s", note)
	}
	_, err = s.Out.Write(written.Text)
	return err
}

// exportOf returns the export of a run: a file, or what the server exports.
func exportOf(ctx context.Context, s *invocation.Invocation, source string) ([]byte, error) {
	if info, err := os.Stat(source); err == nil && info.Mode().IsRegular() {
		text, err := os.ReadFile(source)
		if err != nil {
			return nil, exit.Errorf(exit.Failed, "--from-run: %w", err)
		}
		return text, nil
	}
	id, err := s.RunID(ctx, source)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("export run %q", id)
	patience, stop := s.Patience(ctx)
	defer stop()
	stream, err := s.Runs().ExportRun(patience,
		connect.NewRequest(&signalboxv1.ExportRunRequest{Project: s.Project(), Id: id}))
	if err != nil {
		return nil, s.Failed(err, "%s", what)
	}
	var text bytes.Buffer
	err = s.Copy(stream, &text, what)
	return text.Bytes(), err
}
