package handler

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSnapshotServesFurtherPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s snapshot[int]
		reads := 0
		var failure error
		read := func() (int, error) {
			reads++
			return reads, failure
		}
		get := func(first bool) int {
			value, err := s.read(first, read)
			require.NoError(t, err)
			return value
		}
		require.Equal(t, 1, get(false), "there is none to go on with")
		require.Equal(t, []int{2, 2, 2}, []int{get(true), get(false), get(false)})
		require.Equal(t, 3, get(true))
		<-time.After(time.Minute)
		require.Equal(t, []int{4, 4}, []int{get(false), get(false)})
		failure = errors.New("away")
		_, err := s.read(true, read)
		require.ErrorIs(t, err, failure)
		require.Equal(t, 4, get(false))
	})
}
