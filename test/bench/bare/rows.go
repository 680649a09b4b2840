package bare

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"go.temporal.io/sdk/workflow"
	_ "modernc.org/sqlite" // the driver

	"github.com/signalbox-dev/signalbox/test/platform"
)

// row is what a workflow records of a step.
type row struct {
	Run, Task     string
	Number        int
	At            int64 // nanoseconds
	Input, Output counter
}

const (
	table = `CREATE TABLE steps (run_id TEXT NOT NULL, number BIGINT NOT NULL, task TEXT NOT NULL, status TEXT NOT NULL, started_at BIGINT NOT NULL,
	ended_at BIGINT NOT NULL, input TEXT, output TEXT, PRIMARY KEY (run_id, number))`
	columns = 7 // that have parameters
	values  = `(?, ?, ?, 'completed', ?, ?, ?, ?)`
)

func newRow(ctx workflow.Context, number int, input, output counter) row {
	return row{
		Run: workflow.GetInfo(ctx).WorkflowExecution.ID, Task: fmt.Sprintf("step%d", number), Number: number,
		At:    workflow.Now(ctx).UnixNano(),
		Input: input, Output: output,
	}
}

// rows is the database of the workflows. Write is a local activity.
type rows struct{ db *sql.DB }

func openRows(t platform.T) *rows {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "steps.db")+
		"?_pragma=busy_timeout(4000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate")
	if err != nil {
		t.Fatalf("open the database of the bare worker: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() }) // its folder is deleted
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), table); err != nil {
		t.Fatalf("create the table of the bare worker: %v", err)
	}
	return &rows{db: db}
}

// Write inserts rows with one statement. A repetition changes nothing.
func (r *rows) Write(ctx context.Context, written []row) error {
	args := make([]any, 0, columns*len(written))
	for _, one := range written {
		input, err := json.Marshal(one.Input)
		if err != nil {
			return fmt.Errorf("write the input of a step: %w", err)
		}
		output, err := json.Marshal(one.Output)
		if err != nil {
			return fmt.Errorf("write the output of a step: %w", err)
		}
		args = append(args, one.Run, one.Number, one.Task, one.At, one.At, string(input), string(output))
	}
	query := `INSERT INTO steps VALUES ` + strings.TrimSuffix(strings.Repeat(values+", ", len(written)), ", ") +
		` ON CONFLICT DO NOTHING`
	if _, err := r.db.ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("write %d steps: %w", len(written), err)
	}
	return nil
}
