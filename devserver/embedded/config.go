package embedded

import (
	"net"
	"strconv"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
)

const (
	store       = sqliteplugin.PluginName
	clusterName = "active"
)

// joinLimit is half of the time in which Temporal's services must start; with static hosts it limits nothing else. With
// the default, 15 s in all, the process ended on a busy machine, before it was ready.
const joinLimit = 5 * time.Minute

// The settings of the queue of timers.
const (
	timerPolls   = "history.timerProcessorMaxPollRPS"
	timerReaders = "history.timerQueueMaxReaderCount"
	timerMoves   = "history.queueReaderStuckCriticalAttempts"
)

// maxStates is how many states of workflows are cached. Each takes about 40 kB of memory.
const maxStates = 8000

func (s *Server) config(p portSet) *config.Config {
	disabled := config.Archival{
		History:    config.HistoryArchival{State: config.ArchivalDisabled},
		Visibility: config.VisibilityArchival{State: config.ArchivalDisabled},
	}
	services := map[string]config.Service{
		string(primitives.FrontendService): service(p.frontend),
		string(primitives.HistoryService):  service(p.history),
		string(primitives.MatchingService): service(p.matching),
		string(primitives.WorkerService):   service(p.worker),
	}
	public := config.PublicClient{HostPort: s.address}
	if p.internalFrontend != 0 {
		// The server's own workers have no API key: they use a frontend of their own, as in a cluster with an authorizer.
		services[string(primitives.InternalFrontendService)] = service(p.internalFrontend)
		public = config.PublicClient{}
	}
	return &config.Config{
		Global: config.Global{Membership: config.Membership{MaxJoinDuration: joinLimit}},
		Persistence: config.Persistence{
			DefaultStore: store, VisibilityStore: store, NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{store: {SQL: s.database()}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: clusterName, CurrentClusterName: clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: s.address},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            services,
		Archival:            disabled,
		PublicClient:        public,
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: config.ArchivalDisabled},
		}},
	}
}

func (s *Server) database() *config.SQL {
	if s.opts.DataFile == "" {
		return &config.SQL{
			PluginName: store, DatabaseName: uuid.NewString(),
			ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared"},
		}
	}
	return &config.SQL{
		PluginName: store, DatabaseName: s.opts.DataFile,
		// With a write-ahead log, "normal" survives a crash of the process; only a power failure can lose the last moments.
		ConnectAttributes: map[string]string{
			"mode": "rwc", "journal_mode": "wal", "synchronous": "normal", "busy_timeout": "10000"},
	}
}

func service(port int) config.Service {
	return config.Service{RPC: config.RPC{GRPCPort: port, BindOnLocalHost: true}}
}

func (p portSet) hosts() map[primitives.ServiceName]static.Hosts {
	one := func(port int) static.Hosts {
		address := net.JoinHostPort(host, strconv.Itoa(port))
		return static.Hosts{Self: address, All: []string{address}}
	}
	hosts := map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: one(p.frontend),
		primitives.HistoryService:  one(p.history),
		primitives.MatchingService: one(p.matching),
		primitives.WorkerService:   one(p.worker),
	}
	if p.internalFrontend != 0 {
		hosts[primitives.InternalFrontendService] = one(p.internalFrontend)
	}
	return hosts
}

// dynamicConfig overrides settings that are slow by default for a server of one process.
func dynamicConfig() dynamicconfig.StaticClient {
	const polls, queueWorkers = 200, 16
	return dynamicconfig.StaticClient{
		// With the default of four partitions, a worker with fewer polls than partitions may not receive a task until one of
		// its polls ends, after a minute: the task is in a partition without polls, and was not forwarded because the machine
		// was busy.
		dynamicconfig.MakeKey("matching.numTaskqueueReadPartitions"):  1,
		dynamicconfig.MakeKey("matching.numTaskqueueWritePartitions"): 1,
		// The default is 20 per second: a minimum of 50 ms per dispatch. Far more would starve eager starts.
		dynamicconfig.MakeKey("history.transferProcessorMaxPollRPS"): polls,
		// A timer takes two polls: one that reads it and one that looks for the next. With the default of 20 per second,
		// timers are late by a quarter of a second from ten per second on.
		dynamicconfig.MakeKey(timerPolls): polls,
		// A range that is read more than three times, as on a busy machine, moves to the next reader by default. That one
		// gets only the polls that the first one leaves: as long as it leaves none, the timers of the range do not fire. One
		// reader has no such neighbor. Temporal 1.32 moves the range even where there is one reader at most, unless the
		// number of reads is 0.
		dynamicconfig.MakeKey(timerReaders): 1,
		dynamicconfig.MakeKey(timerMoves):   0,
		// The default is 512 workers of each queue. All wait for the one connection of SQLite: on a busy machine each waits
		// for longer than its task may take, fails, and is tried again, so that most of the work is lost and timers stand
		// still for as long as the backlog lasts.
		dynamicconfig.MakeKey("history.timerProcessorSchedulerWorkerCount"):      queueWorkers,
		dynamicconfig.MakeKey("history.transferProcessorSchedulerWorkerCount"):   queueWorkers,
		dynamicconfig.MakeKey("history.visibilityProcessorSchedulerWorkerCount"): queueWorkers,
		// The states of workflows stay in this cache for an hour, also of those that have ended, and the default is 128,000
		// of them. A limit in bytes would count less than a twentieth of what they take in memory.
		dynamicconfig.MakeKey("history.hostLevelCacheMaxSize"): maxStates,
		// With the default, a timer of a millisecond takes a second.
		dynamicconfig.MakeKey("history.timerProcessorMaxTimeShift"): 10 * time.Millisecond,
		// The polls of a stopping worker end at once instead of receiving a task.
		dynamicconfig.MakeKey("frontend.enableCancelWorkerPollsOnShutdown"): true,
		// One process has no load balancer: stop at once.
		dynamicconfig.MakeKey("frontend.shutdownDrainDuration"):           time.Duration(0),
		dynamicconfig.MakeKey("frontend.shutdownFailHealthCheckDuration"): time.Duration(0),
		dynamicconfig.MakeKey("history.shutdownDrainDuration"):            time.Duration(0),
		dynamicconfig.MakeKey("matching.shutdownDrainDuration"):           time.Duration(0),
	}
}
