package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/namespace"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/resolver"
	"google.golang.org/protobuf/types/known/durationpb"
)

// DefaultRetention is how long Temporal keeps closed workflows by default. Each takes about 25 kB.
const DefaultRetention = 24 * time.Hour

// checkRetention returns an error if Temporal does not allow the retention.
func checkRetention(retention time.Duration) error {
	if retention < namespace.MinRetentionLocal {
		return fmt.Errorf("the embedded Temporal keeps closed workflows for at least %s, not %s: choose a longer retention",
			namespace.MinRetentionLocal, retention)
	}
	return nil
}

// setRetention sets the retention of the namespace in the database. It must be called before the services start: they
// cache namespaces.
func (s *Server) setRetention(ctx context.Context, database *config.SQL) (err error) {
	db, err := sql.NewSQLDB(sqlplugin.DbKindUnknown, database, resolver.NewNoopResolver(), log.NewNoopLogger(),
		metrics.NoopMetricsHandler)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.SelectFromNamespace(ctx, sqlplugin.NamespaceFilter{Name: &s.opts.Namespace})
	if err != nil {
		return err
	}
	serializer := serialization.NewSerializer()
	for _, row := range rows { // one: names are unique
		detail, err := serializer.NamespaceDetailFromBlob(persistence.NewDataBlob(row.Data, row.DataEncoding))
		if err != nil {
			return err
		}
		if detail.GetConfig().GetRetention().AsDuration() == s.opts.Retention {
			continue
		}
		detail.Config.Retention = durationpb.New(s.opts.Retention)
		blob, err := serializer.NamespaceDetailToBlob(detail)
		if err != nil {
			return err
		}
		row.Data, row.DataEncoding = blob.GetData(), blob.GetEncodingType().String()
		if _, err := db.UpdateNamespace(ctx, &row); err != nil {
			return err
		}
	}
	return nil
}
