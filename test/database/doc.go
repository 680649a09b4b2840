// Package database gives a test a database that it may break: a Postgres or Redis server of its own, which it can
// freeze, crash and restart, and a SQLite file that another connection locks.
//
//	server := database.StartPostgres(t)
//	s := platform.StartServer(t, platform.ServerOptions{Store: server.Store(), …})
//	server.Crash()
//	server.Restart(t)
//
// Tests that only need a database take one from the platform package; that server is shared and cheap.
package database
