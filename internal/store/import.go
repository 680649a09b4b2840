package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/store/legacy"
)

// ImportLegacy copies the runs of an older engine's database into this one (see package legacy).
func (s *Store) ImportLegacy(ctx context.Context, o legacy.Options) (legacy.Report, error) {
	return legacy.Import(ctx, s.db, o)
}

// FollowLegacy returns a follower, which copies additions to an older engine's database in passes.
func (s *Store) FollowLegacy(o legacy.Options) *legacy.Follower { return legacy.NewFollower(s.db, o) }
