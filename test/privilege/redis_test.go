package privilege_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

const redisPassword = "secret"

// redisRules returns the rules of the user signalbox in deploy/redis/users.acl, with a password.
func redisRules(t *testing.T) []string {
	t.Helper()
	_, rules, found := strings.Cut(read(t, "redis/users.acl"), "user signalbox ")
	require.True(t, found)
	rules, _, _ = strings.Cut(rules, "\n")
	require.Contains(t, rules, "#PASSWORD_SHA256")
	return strings.Fields(strings.Replace(rules, "#PASSWORD_SHA256", ">"+redisPassword, 1))
}

// restrictRedis creates the user, and resets what the server has counted so far.
func (e *environment) restrictRedis(t *testing.T) {
	t.Helper()
	command := []any{"ACL", "SETUSER", "signalbox"}
	for _, rule := range redisRules(t) {
		command = append(command, rule)
	}
	require.NoError(t, e.redis.Client.Do(t.Context(), command...).Err())
	require.NoError(t, e.redis.Client.ConfigResetStat(t.Context()).Err())
}

// requireExactACL requires that Redis has refused nothing, and that every command of the ACL was used.
func (e *environment) requireExactACL(t *testing.T) {
	t.Helper()
	refused, err := e.redis.Client.ACLLog(t.Context(), 100).Result()
	require.NoError(t, err)
	for _, entry := range refused {
		t.Errorf("Redis refused: %s %s (%s)", entry.Reason, entry.Object, entry.Context)
	}
	requireSameRights(t, "Redis", allowedCommands(t), usedCommands(t, e.redis.Client))
}

// allowedCommands returns the commands of the ACL.
func allowedCommands(t *testing.T) []string {
	t.Helper()
	var commands []string
	for _, rule := range redisRules(t) {
		if command, found := strings.CutPrefix(rule, "+"); found {
			commands = append(commands, command)
		}
	}
	return commands
}

// usedCommands returns the commands that the server has executed, also in scripts, without those of the test.
func usedCommands(t *testing.T, client *redis.Client) []string {
	t.Helper()
	info, err := client.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	var used []string
	for _, found := range regexp.MustCompile(`cmdstat_([^:]+):calls=[1-9]`).FindAllStringSubmatch(info, -1) {
		if command := found[1]; !slices.Contains([]string{"acl|setuser", "acl|log", "config|resetstat", "info"}, command) {
			used = append(used, command)
		}
	}
	return used
}
