package privilege_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// permissions is deploy/temporal/permissions.yaml.
type permissions struct {
	Roles map[string][]string `yaml:"roles"`
}

var (
	allowedCall = regexp.MustCompile(`msg="Call allowed" role=(\w+) call=(\S+)`)
	refusedCall = regexp.MustCompile(`msg="Call refused[^\n]*`)
)

// requireExactPermissions requires that Temporal has refused nothing, and that each role made every call that it may
// make. Work of one elected server is done by either role: a call that both may make counts as used if one of them made
// it.
func (e *environment) requireExactPermissions(t *testing.T) {
	t.Helper()
	var p permissions
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "temporal/permissions.yaml")), &p))
	output := e.temporal.Output()
	for _, line := range refusedCall.FindAllString(output, -1) {
		t.Errorf("Temporal: %s", line)
	}
	used := map[string][]string{}
	for _, found := range allowedCall.FindAllStringSubmatch(output, -1) {
		used[found[1]] = append(used[found[1]], found[2])
	}
	for role, calls := range p.Roles {
		for other, more := range used {
			for _, call := range more {
				if other != role && slices.Contains(calls, call) && slices.Contains(p.Roles[other], call) {
					used[role] = append(used[role], call)
				}
			}
		}
		requireSameRights(t, "Temporal, role "+role, calls, used[role])
	}
}
