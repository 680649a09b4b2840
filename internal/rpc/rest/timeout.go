package rest

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// TimeoutHeader is the header with the maximum duration of a REST call in seconds.
const TimeoutHeader = "X-Server-Timeout"

// Timeout returns the timeout in the headers, or false if there is none. A value that is not a positive decimal number of seconds is an
// error; one beyond the range of [time.Duration] is reduced.
func Timeout(h http.Header) (time.Duration, bool, error) {
	values := h.Values(TimeoutHeader)
	if len(values) == 0 {
		return 0, false, nil
	}
	seconds, err := strconv.ParseFloat(values[0], 64)
	if len(values) > 1 || err != nil || !(seconds > 0) || math.IsInf(seconds, 0) || !decimal(values[0]) {
		return 0, false, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"header %s: %q is not a timeout: send one positive number of seconds, for example 2.5", TimeoutHeader, values).
			WithField(TimeoutHeader, "is not a timeout")
	}
	const most = 365 * 24 * time.Hour
	return time.Duration(min(seconds, most.Seconds()) * float64(time.Second)), true, nil
}

// decimal rejects the other forms that Go parses as a number: hexadecimal, underscores, signs, words.
func decimal(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && c != '.' {
			return false
		}
	}
	return true
}
