package dispatcher

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// TestDispatcherErrorsHideHostNames: callers see that dispatchers cannot be read, without the address of the backend
// that failed.
func TestDispatcherErrorsHideHostNames(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	ctx := logger.WithContext(t.Context(), slog.New(slog.NewTextHandler(&lines, nil)))
	away := errors.New("dial tcp redis.example.com:6379: connection refused")
	err := statusError(ctx, away)
	require.True(t, apperror.Is(err, apperror.LeasesUnavailable))
	require.NotContains(t, err.Error(), "example.com")
	require.ErrorIs(t, err, away)
	require.Contains(t, lines.String(), "redis.example.com:6379")

	// Errors with a reason pass unchanged.
	refused := apperror.New(apperror.Refused, apperror.DispatcherNotOwned, "no owner")
	require.Equal(t, error(refused), statusError(ctx, refused))
}

func TestDetailNamesDuplicates(t *testing.T) {
	t.Parallel()
	others := make([]dispatchtype.Execution, 7)
	for i := range others {
		others[i].WorkflowID = fmt.Sprintf("router-%d", i)
	}
	d := describe(t.Context(),
		dispatchtype.Dispatcher{Status: dispatchtype.Routing, Reason: "its owner holds the lease", Others: others[:1]})
	require.Equal(t, `also open under an older ID: "router-0"`, d.Detail)
	d = describe(t.Context(),
		dispatchtype.Dispatcher{Status: dispatchtype.Missing, Reason: "none is open", Others: others})
	require.Equal(t, `none is open; also open under an older ID: "router-0", "router-1", "router-2", "router-3", "router-4" and 2 more`, d.Detail)
	d = describe(t.Context(),
		dispatchtype.Dispatcher{Status: dispatchtype.Routing, Others: others[:1], Unknown: others[1:2]})
	require.Equal(t, `also open under an older ID: "router-0"; foreign dispatcher on its task queue: "router-1"`, d.Detail)
}
