package rest

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// timeoutHeader is the header with the maximum duration of a REST call in seconds.
const timeoutHeader = "X-Server-Timeout"

// withTimeout returns the context of a request with the deadline of its timeout, if it has one. A value that is not a
// positive decimal number of seconds is an error; one beyond the range of [time.Duration] is reduced.
func withTimeout(r *http.Request) (context.Context, context.CancelFunc, error) {
	values := r.Header.Values(timeoutHeader)
	if len(values) == 0 {
		return r.Context(), func() {}, nil
	}
	seconds, err := strconv.ParseFloat(values[0], 64)
	// ParseFloat reads more forms than decimal ones: hexadecimal, underscores, signs, words.
	decimal := strings.Trim(values[0], "0123456789.") == ""
	if len(values) > 1 || err != nil || !decimal || seconds <= 0 || math.IsInf(seconds, 0) {
		return nil, nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"header %s: %q is not a timeout: send one positive number of seconds, for example 2.5", timeoutHeader, values).
			WithField(timeoutHeader, "is not a timeout")
	}
	const most = 365 * 24 * time.Hour
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(min(seconds, most.Seconds())*float64(time.Second)))
	return ctx, cancel, nil
}
