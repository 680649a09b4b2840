package problem

import (
	"context"
	"fmt"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/server"
)

// addLostServers adds the servers that have written no heartbeat and were not stopped.
func (s *Service) addLostServers(ctx context.Context, l *live) {
	lost, known, err := s.o.LostServers(ctx)
	switch {
	case err != nil:
		l.missing(ctx, fromServers, "lost servers", err)
	case !known: // for some seconds after the start and after an outage of the database: what was recorded still holds
		l.unknown[fromServers] = true
	}
	for _, v := range lost {
		l.findings = append(l.findings, serverFinding(v))
	}
}

func serverFinding(v server.Server) Finding {
	const minute = "2006-01-02 15:04:05 MST"
	return Finding{
		ID: idOf(Platform, "", string(ServerLost), v.ID), Kind: Platform, Code: ServerLost, Title: "Server " + v.Instance +
			" is lost", Cause: v.Instance,
		Detail: fmt.Sprintf("it was last seen at %s, and was not stopped: its process was killed or is frozen, or it "+
			"cannot reach the database; "+
			"server ID %s, roles %s, version %s", v.SeenAt.UTC().Format(minute), v.ID, strings.Join(v.Roles, ", "), v.Version),
		Advice: "look at its log and its machine, and start it again with the same address: that ends the problem; " +
			"acknowledge the problem if the server was removed for good",
		Runbook: runbook("ServerUnreachable"), First: v.SeenAt,
	}
}
