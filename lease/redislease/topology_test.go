package redislease_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/leasetest"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

func TestPasswordsMayChange(t *testing.T) {
	t.Parallel()
	server := start(t, "--requirepass", "first")
	get := func(o redislease.Options) error {
		_, err := open(t, o).Get(t.Context(), key)
		return err
	}
	require.ErrorContains(t, get(redislease.Options{URL: server.url()}), "NOAUTH")
	require.ErrorContains(t, get(redislease.Options{URL: "redis://:wrong@" + server.addr}), "WRONGPASS")
	require.ErrorIs(t, get(redislease.Options{URL: "redis://:first@" + server.addr}), lease.ErrNotFound)
	require.ErrorIs(t, get(redislease.Options{URL: "redis://default:first@" + server.addr}), lease.ErrNotFound)

	var password atomic.Value
	password.Store("first")
	store := open(t, redislease.Options{Addresses: []string{server.addr}, Password: func() (string, error) {
		return password.Load().(string), nil
	}})
	held := keep(t, store)
	admin := redis.NewClient(&redis.Options{Addr: server.addr, Password: "first"})
	defer admin.Close()
	require.NoError(t, admin.ConfigSet(t.Context(), "requirepass", "second").Err())
	password.Store("second")
	require.NoError(t, admin.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
	renewed(t, held)
	require.NoError(t, held.Resign(t.Context()))

	unreadable := func() (string, error) { return "", os.ErrNotExist }
	require.ErrorIs(t, get(redislease.Options{URL: server.url(), Password: unreadable}), os.ErrNotExist)
}

// TestDocumentedRightsAreSufficient runs the checks as a user with the rights in the package comment.
func TestDocumentedRightsAreSufficient(t *testing.T) {
	t.Parallel()
	server := start(t)
	name := createUser(t, server)
	admin := server.client(t)
	for i, check := range leasetest.Checks() {
		if check.Name == "entries outlive their leases" || check.Name == "a random history is consistent" {
			continue // these take long and need no other rights
		}
		check.Run(t, open(t, redislease.Options{
			Addresses: []string{server.addr}, Username: name, Password: func() (string, error) { return "secret", nil },
			Prefix: fmt.Sprintf("leasetest:%d:", i),
		}))
	}

	// Without the right to publish there are no hints, and all else works. Without the right to subscribe, Watch fails.
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", name, "resetchannels").Err())
	store := open(t, redislease.Options{URL: "redis://" + name + ":secret@" + server.addr, Prefix: "leasetest:"})
	got := acquire(t, store, "a", long)
	require.NoError(t, store.Resign(t.Context(), key, got.Token))
	_, err := store.Watch(t.Context())
	require.ErrorContains(t, err, "NOPERM")
}

// createUser creates the user that the package comment has, for the prefix leasetest:, with the password "secret", and
// returns its name.
func createUser(t *testing.T, s *server) string {
	t.Helper()
	comment, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(comment), "//	ACL SETUSER ")
	rights, _, found := strings.Cut(after, "\n")
	require.True(t, found)
	name, rules, _ := strings.Cut(
		strings.NewReplacer("~signalbox:", "~leasetest:", "&signalbox:", "&leasetest:*:").Replace(rights), " ")
	command := []any{"ACL", "SETUSER", name}
	for rule := range strings.FieldsSeq(strings.ReplaceAll(rules, "PASSWORD", "secret")) {
		command = append(command, rule)
	}
	require.NoError(t, s.client(t).Do(t.Context(), command...).Err())
	return name
}

// authority makes a certificate authority, and a certificate for 127.0.0.1 as PEM files and as a value.
func authority(t *testing.T, dir string) (roots *x509.CertPool, client tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cert.pem"), certPEM, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.pem"), keyPEM, 0o600))
	client, err = tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, err)
	roots = x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certPEM))
	return roots, client
}

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roots, certificate := authority(t, dir)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	server := start(t, "--tls", "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
		"--tls-auth-clients", "yes")
	get := func(o redislease.Options) error {
		_, err := open(t, o).Get(t.Context(), "absent")
		return err
	}
	trusting := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	full := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	var unknown *tls.CertificateVerificationError
	require.ErrorAs(t, get(redislease.Options{URL: "rediss://" + server.addr}), &unknown)
	err := get(redislease.Options{URL: "rediss://" + server.addr, TLS: trusting})
	require.Error(t, err)
	require.Regexp(t, "certificate required|connection reset|broken pipe", err,
		"the server closes the connection after its alert, which may be lost")
	require.ErrorIs(t, get(redislease.Options{URL: "rediss://" + server.addr, TLS: full}), lease.ErrNotFound)
	require.ErrorIs(t, get(redislease.Options{Addresses: []string{server.addr}, TLS: full}), lease.ErrNotFound)
}

// TestFailover lets the sentinel promote the replica to master. The leases continue.
func TestFailover(t *testing.T) {
	t.Parallel()
	master := start(t, "--repl-diskless-sync-delay", "0")
	replica := start(t, "--replicaof", strings.Replace(master.addr, ":", " ", 1))
	follower := replica.client(t)
	require.Eventually(t, func() bool {
		info, err := follower.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	}, limit, tick)
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "sentinel monitor leases %s 1\nsentinel "+
		"down-after-milliseconds leases 300\nsentinel failover-timeout leases 3000\n",
		strings.Replace(master.addr, ":", " ", 1)), 0o600))
	sentinel := start(t, "--sentinel", config)
	watcher := redis.NewSentinelClient(&redis.Options{Addr: sentinel.addr})
	defer watcher.Close()
	require.Eventually(t, func() bool {
		known, err := watcher.Replicas(t.Context(), "leases").Result()
		return err == nil && len(known) == 1 && known[0]["master-link-status"] == "ok"
	}, limit, tick)

	store := open(t, redislease.Options{Addresses: []string{sentinel.addr}, MasterName: "leases"})
	sent := time.Now()
	held := lease.Keep(t.Context(), store, acquire(t, store, "a", long), sent,
		lease.KeepOptions{Interval: 200 * time.Millisecond, Lifetime: long})
	renewed(t, held)
	require.Eventually(t, func() bool { return follower.Exists(t.Context(), "signalbox:"+key).Val() == 1 }, limit, tick)
	master.kill(t)
	renewed(t, held)
	role, err := follower.Info(t.Context(), "replication").Result()
	require.NoError(t, err)
	require.Contains(t, role, "role:master")
	require.NoError(t, held.Resign(t.Context()))
}

// cluster starts three masters that share the slots.
func cluster(t *testing.T) []string {
	t.Helper()
	var addresses []string
	var nodes []*redis.Client
	for i := range 3 {
		bus := freePort(t)
		node := start(t, "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1000")
		addresses, nodes = append(addresses, node.addr), append(nodes, node.client(t))
		from, to := 16384*i/3, 16384*(i+1)/3-1
		require.NoError(t, nodes[i].Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", from, to).Err())
		require.NoError(t, nodes[i].Do(t.Context(), "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
		host, port, err := net.SplitHostPort(node.addr)
		require.NoError(t, err)
		require.NoError(t, nodes[0].Do(t.Context(), "CLUSTER", "MEET", host, port, bus).Err())
	}
	for _, node := range nodes {
		require.Eventually(t, func() bool {
			info, err := node.ClusterInfo(t.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		}, limit, tick)
	}
	return addresses
}

func TestClusterConforms(
	t *testing.T) {
	t.Parallel()
	addresses := cluster(t)
	t.Run("by addresses", func(t *testing.T) {
		t.Parallel()
		leasetest.Run(t, func(t *testing.T) lease.Store {
			t.Helper()
			return open(t, redislease.Options{Addresses: addresses, Cluster: true, Prefix: prefix()})
		})
	})
	t.Run("by one URL", func(t *testing.T) {
		t.Parallel()
		store := open(t, redislease.Options{URL: "redis://" + addresses[1], Cluster: true, Prefix: prefix()})
		got := acquire(t, store, "a", long)
		require.NoError(t, store.Resign(t.Context(), key, got.Token))
	})
}
