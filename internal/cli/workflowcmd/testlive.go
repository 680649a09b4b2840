package workflowcmd

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/cli/runcase"
	"github.com/signalbox-dev/signalbox/internal/netguard"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// liveClient returns the sender of "test --live". As on the platform, redirects are not followed, and only public
// addresses and the allowed networks are reached, without a proxy.
func liveClient(allowed []netip.Prefix) workflowtest.Sender {
	guard := netguard.New(allowed).Advise("--allow-private with its network allows it")
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DialContext: (&net.Dialer{ControlContext: guard.Control}).DialContext},
	}
	return client.Do
}

// parseNetworks reads the values of --allow-private.
func parseNetworks(texts []string) (list []netip.Prefix, err error) {
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, exit.Usagef("--allow-private: %q is not a network; write an address and a prefix length, for example "+
				"127.0.0.0/8", text)
		}
		list = append(list, network)
	}
	return list, nil
}

// writeMocks writes the responses to the requests that were sent as mocks of their cases. Those of a case that is written
// in a way that this cannot extend are printed instead.
func writeMocks(s *invocation.Invocation, file string, report *workflowtest.Report) error {
	source, err := os.ReadFile(file)
	if err != nil {
		return exit.Errorf(exit.Failed, "write the mocks: %w", err)
	}
	written := 0
	for _, r := range slices.Backward(report.Results) { // from the end, so that the lines before stay where they are
		mocks := mergedMocks(r.Live)
		if len(mocks) == 0 {
			continue
		}
		extended, ok, err := withMocks(source, r.Pos.Line, r.Pos.Column, mocks)
		if err != nil {
			return err
		}
		if !ok {
			text, err := mockLines(mocks, "")
			if err != nil {
				return err
			}
			s.Note("add to the mocks of the case %q:\n%s", r.Case, terminal.Text(text))
			continue
		}
		source, written = extended, written+len(mocks)
	}
	if written == 0 {
		return nil
	}
	if err := os.WriteFile(file, source, 0o644); err != nil { //nolint:gosec // a source file, whose mode stays
		return exit.Errorf(exit.Failed, "write the mocks: %w", err)
	}
	s.Note("%s: %s written", file, output.Count(int64(written), "mock"))
	return nil
}

// mergedMocks joins the responses to the requests of one task.
func mergedMocks(live []workflowtest.Mock) []*runcase.Mock {
	var mocks []*runcase.Mock
	for _, m := range live {
		i := slices.IndexFunc(mocks, func(o *runcase.Mock) bool { return o.Task == m.Task })
		if i < 0 {
			i = len(mocks)
			mocks = append(mocks, &runcase.Mock{Task: m.Task})
		}
		for _, r := range m.Respond {
			response := map[string]any{}
			if r.Status != http.StatusOK {
				response["status"] = r.Status
			}
			if len(r.Headers) > 0 {
				response["headers"] = r.Headers
			}
			if r.HasBody {
				response["body"] = r.Body
			}
			mocks[i].Respond = append(mocks[i].Respond, runcase.Response{Members: response})
		}
	}
	return mocks
}

// mockLines returns the lines of mocks, each with an indentation.
func mockLines(mocks []*runcase.Mock, indentation string) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2) //nolint:mnd // as workflow format does
	if err := encoder.Encode(mocks); err != nil {
		return "", fmt.Errorf("write the mocks: %w", err)
	}
	var b strings.Builder
	for line := range strings.Lines(out.String()) {
		b.WriteString(indentation + line)
	}
	return b.String(), nil
}

// withMocks returns a test file with mocks in the case that begins at a position. ok is false if the case is not written
// with a line for each key.
func withMocks(source []byte, line, column int, mocks []*runcase.Mock) (extended []byte, ok bool, err error) {
	lines := strings.SplitAfter(string(source), "\n")
	if line < 1 || line > len(lines) || column < 1 || strings.Contains(lines[line-1], "{") {
		return nil, false, nil
	}
	indentation := strings.Repeat(" ", column-1)
	at, head := line, indentation+"mocks:\n"
	for i := line; i < len(lines) && (strings.HasPrefix(lines[i], indentation) || strings.TrimSpace(lines[i]) == ""); i++ {
		if strings.TrimRight(lines[i], " \r\n") == indentation+"mocks:" {
			at, head = i+1, ""
		}
	}
	text, err := mockLines(mocks, indentation+"  ")
	if err != nil {
		return nil, false, err
	}
	extended = []byte(strings.Join(lines[:at], "") + head + text + strings.Join(lines[at:], ""))
	if _, violations := workflowtest.Parse(extended); len(violations) > 0 {
		return nil, false, nil
	}
	return extended, true, nil
}
