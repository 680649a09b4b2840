package privilege_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// logStatements makes Postgres write every statement of the runtime role into a file, and connects as superuser.
func (e *environment) logStatements(t *testing.T) {
	t.Helper()
	e.connect(t, "")
	for _, statement := range []string{
		`ALTER SYSTEM SET logging_collector = on`, `ALTER SYSTEM SET log_destination = 'jsonlog'`,
		`ALTER SYSTEM SET log_rotation_size = 0`,
		`ALTER SYSTEM SET log_filename = 'statements.log'`,
	} {
		_, err := e.admin.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	require.NoError(t, e.admin.Close(t.Context()))
	e.postgres.Crash() // these settings require a restart
	e.postgres.Restart(t)
	// The superuser that the server has been created with has the name of the runtime role.
	e.connect(t, "")
	_, err := e.admin.Exec(t.Context(), "CREATE ROLE "+superuser+" SUPERUSER LOGIN")
	require.NoError(t, err)
	require.NoError(t, e.admin.Close(t.Context()))
	e.connect(t, superuser)
	_, err = e.admin.Exec(t.Context(), "ALTER ROLE "+runtime+" RENAME TO created_with")
	require.NoError(t, err)
}

func (e *environment) connect(t *testing.T, user string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), e.store(t, user).DSN)
	require.NoError(t, err)
	e.admin = conn
}

// logged reads the log of Postgres: the different statements of the runtime role, and the errors about missing rights.
func (e *environment) logged(t *testing.T) (statements, refused []string) {
	t.Helper()
	var folder string
	require.NoError(t, e.admin.QueryRow(t.Context(), `SHOW data_directory`).Scan(&folder))
	log, err := os.Open(filepath.Join(folder, "log/statements.json"))
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	seen := map[string]bool{}
	for lines := json.NewDecoder(log); lines.More(); {
		var line struct {
			User    string `json:"user"`
			Message string `json:"message"`
			State   string `json:"state_code"`
		}
		require.NoError(t, lines.Decode(&line))
		if line.User != runtime {
			continue
		}
		if line.State == "42501" {
			refused = append(refused, line.Message)
		}
		if text, found := statementText(line.Message); found && !seen[text] {
			seen[text] = true
			statements = append(statements, text)
		}
	}
	return statements, refused
}

var statementLine = regexp.MustCompile(`(?s)^(?:statement|execute [^:]+): (.*)$`)

// statementText returns the statement of a log line that can be explained.
func statementText(message string) (string, bool) {
	found := statementLine.FindStringSubmatch(message)
	if found == nil {
		return "", false
	}
	return found[1], slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}, strings.Fields(found[1])[0])
}

// grant is one right on one table.
type grant struct{ table, right string }

func (g grant) String() string { return g.right + " ON " + g.table }

// grants returns the rights that the runtime role has.
func (e *environment) grants(t *testing.T) []grant {
	t.Helper()
	rows, err := e.admin.Query(t.Context(),
		`SELECT table_name, privilege_type FROM information_schema.table_privileges
WHERE grantee = $1 AND table_schema = 'public' ORDER BY 1, 2`, runtime)
	require.NoError(t, err)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g grant, err error) {
		return g, row.Scan(&g.table, &g.right)
	})
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

// requireExactGrants requires that Postgres has refused nothing, and that each right is required by a statement that
// the servers executed: without the right, Postgres refuses to explain that statement.
func (e *environment) requireExactGrants(t *testing.T) {
	t.Helper()
	statements, refused := e.logged(t)
	for _, message := range refused {
		t.Errorf("Postgres refused: %s", message)
	}
	conn, err := pgx.Connect(t.Context(), e.store(t, superuser).DSN)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	explained := prepareAll(t, conn, statements)
	for _, g := range e.grants(t) {
		if !g.required(t, conn, explained) && rare()[g.String()] == "" {
			t.Errorf("Postgres: %s is granted, and no statement required it", g)
		}
	}
}

// statement is a prepared statement: its text, and the command that explains it.
type statement struct{ text, explain string }

// prepareAll prepares statements on a connection.
func prepareAll(t *testing.T, conn *pgx.Conn, texts []string) []statement {
	t.Helper()
	list := make([]statement, len(texts))
	for i, text := range texts {
		name := fmt.Sprintf("s%d", i)
		prepared, err := conn.Prepare(t.Context(), name, text)
		require.NoError(t, err, text)
		list[i] = statement{text: text, explain: "EXPLAIN EXECUTE " + name}
		if n := len(prepared.ParamOIDs); n > 0 {
			list[i].explain += "(NULL" + strings.Repeat(", NULL", n-1) + ")"
		}
	}
	return list
}

// required reports whether one of the statements is refused without the right.
func (g grant) required(t *testing.T, conn *pgx.Conn, statements []statement) bool {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	for _, s := range []string{"REVOKE " + g.right + " ON " + g.table + " FROM " + runtime, "SET LOCAL ROLE " + runtime} {
		_, err := tx.Exec(t.Context(), s)
		require.NoError(t, err)
	}
	named := regexp.MustCompile(`\b` + g.table + `\b`)
	for _, s := range statements {
		if !named.MatchString(s.text) || g.right != "SELECT" && !strings.Contains(s.text, g.right) {
			continue
		}
		_, err := tx.Exec(t.Context(), s.explain)
		if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && refusal.Code == "42501" {
			return true
		}
		require.NoError(t, err, s.text)
	}
	return false
}
