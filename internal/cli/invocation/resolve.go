package invocation

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

const (
	// idLength is the length of a whole ID.
	idLength = 36
	// minPart is the shortest part of an ID that is looked up. IDs begin with a time: fewer characters hardly ever select
	// one.
	minPart = 6
	// named is how many IDs an error names.
	named = 3
)

// BindRuns is BindClient for a command whose arguments, or the first count of them, are IDs of runs: each may be the
// beginning or the end of an ID that no other run's ID has.
func (s *Invocation) BindRuns(cmd *cobra.Command, count int) {
	s.BindClient(cmd)
	resolve(cmd, count, s.RunID)
}

// BindBatch is BindRuns for a command whose argument is the ID of a batch.
func (s *Invocation) BindBatch(cmd *cobra.Command) {
	s.BindClient(cmd)
	resolve(cmd, 1, s.batchID)
}

// resolve replaces the first count arguments of a command by the IDs that begin or end with them.
func resolve(cmd *cobra.Command, count int, id func(ctx context.Context, text string) (string, error)) {
	inner := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := inner(cmd, args); err != nil {
			return err
		}
		for i := range args[:min(count, len(args))] {
			whole, err := id(cmd.Context(), args[i])
			if err != nil {
				return err
			}
			args[i] = whole // the slice is that of the command itself
		}
		return nil
	}
}

// RunID returns the ID of the only run whose ID begins or ends with the text. A whole ID, and what is no part of one, is
// returned as it is.
func (s *Invocation) RunID(ctx context.Context, text string) (string, error) {
	if !isPart(text) {
		return text, nil
	}
	request := &signalboxv1.ListRunsRequest{
		Project: s.Project(), Filter: &signalboxv1.RunFilter{Text: text}, PageSize: named + 1}
	response, err := Call(ctx, s, s.Runs().ListRuns, request, "find the run whose ID begins or ends with %q", text)
	if err != nil {
		return "", err
	}
	var found []string
	for _, run := range response.GetRuns() {
		if hasPart(run.GetId(), text) {
			found = append(found, run.GetId())
		}
	}
	return only(text, "run", found)
}

// batchID is runID for batches.
func (s *Invocation) batchID(ctx context.Context, text string) (string, error) {
	if !isPart(text) {
		return text, nil
	}
	all, _, err := Pages(0, func(size int32, token string) ([]*signalboxv1.Batch, string, error) {
		request := &signalboxv1.ListBatchesRequest{Project: s.Project(), PageSize: size, PageToken: token}
		response, err := Call(ctx, s, s.Batches().ListBatches, request, "find the batch whose ID begins or ends with %q", text)
		return response.GetBatches(), response.GetNextPageToken(), err
	})
	if err != nil {
		return "", err
	}
	var found []string
	for _, batch := range all {
		if hasPart(batch.GetId(), text) {
			found = append(found, batch.GetId())
		}
	}
	return only(text, "batch", found)
}

// NameAndVersion divides the name of a workflow that may have a version, "shop/order@1.2.0". The version may also be
// given by a flag; both exclude each other.
func NameAndVersion(text, version string) (name, of string, err error) {
	name, of, has := strings.Cut(text, "@")
	switch {
	case !has:
		return text, version, nil
	case of == "" || name == "":
		return "", "", exit.Usagef("%q is no NAME@VERSION; write it like shop/order@1.2.0", text)
	case version != "" && version != of:
		return "", "", exit.Usagef("%q names a version, and so does --version %s; leave out one of the two", text, version)
	}
	return name, of, nil
}

// isPart reports whether a text may be the beginning or the end of an ID and is not a whole one.
func isPart(text string) bool {
	return len(text) >= minPart && len(text) < idLength && strings.Trim(text, "0123456789abcdef-") == ""
}

func hasPart(id, text string) bool { return strings.HasPrefix(id, text) || strings.HasSuffix(id, text) }

// only returns the only ID. Without one, the text itself is returned: the server reports that it does not exist.
func only(text, thing string, found []string) (string, error) {
	switch {
	case len(found) == 0:
		return text, nil
	case len(found) == 1:
		return found[0], nil
	case len(found) > named:
		found = append(found[:named], "…")
	}
	return "", exit.Usagef("the IDs of several %s begin or end with %q: %s; write more of the ID", output.Plural(thing), text,
		strings.Join(found, ", "))
}
