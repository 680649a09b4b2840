package dispatchtype_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
)

func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	timing := dispatchtype.Timing{}.WithDefaults()
	require.NoError(t, timing.Validate())
	require.NoError(t, dispatchtype.Supervisor{}.WithDefaults().Validate(timing.StaleAfter))
	require.Equal(t, 9*time.Second, timing.Owner().TTL)
	require.Equal(t, 20*time.Second, timing.Worker().TTL)
}

func TestValidateReturnsEveryViolation(t *testing.T) {
	t.Parallel()
	timing := dispatchtype.Timing{
		Renew: 9 * time.Second, Heartbeat: 30 * time.Second, StaleAfter: 30 * time.Second, Retention: 9 * time.Second,
		Idle: -1}
	err := timing.WithDefaults().Validate()
	require.Equal(t, []string{
		"idle: -1ns is not positive",
		"renew 9s is not shorter than ttl 9s",
		"renew and margin 10s is not shorter than ttl 9s",
		"heartbeat 30s is not shorter than stale after 30s",
		"stale after 30s is not shorter than retention 9s",
		"ttl 9s is not shorter than retention 9s",
	}, strings.Split(err.Error(), "\n"))

	err = dispatchtype.Supervisor{
		Interval: 2 * time.Minute, MaxTerminations: -1, Rate: -1}.WithDefaults().Validate(20 * time.Second)
	require.Equal(t, []string{
		"max terminations: -1 is not positive",
		"rate: -1 is not positive",
		"stale after 20s, confirm 2s and interval 2m0s add up to 2m22s: what a crash leaves behind must be gone within 2m0s",
	}, strings.Split(err.Error(), "\n"))
}
