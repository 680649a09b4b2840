package rpc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/rpc"
)

// pair returns a self-signed certificate with this serial number, as PEM.
func pair(t *testing.T, number int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, content, 0o600))
}

// number returns the serial number of the certificate that the server presents.
func number(t *testing.T, address string, client *tls.Config) (int64, error) {
	t.Helper()
	client.InsecureSkipVerify = true
	c, err := tls.Dial("tcp", address, client)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		return 0, err
	}
	if _, err := c.Read(make([]byte, 1)); err != nil { // a refusal of the client's certificate comes here
		return 0, err
	}
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

func serveTLS(t *testing.T, files rpc.CertificateFiles) string {
	t.Helper()
	keeper, err := rpc.OpenCertificate(files)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = nil
	listener := tls.NewListener(server.Listener, keeper.Config())
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return listener.Addr().String()
}

func TestCertificateRotationNeedsNoRestart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	files := rpc.CertificateFiles{Cert: filepath.Join(folder, "tls.crt"), Key: filepath.Join(folder, "tls.key")}
	_, err := rpc.OpenCertificate(files)
	require.ErrorContains(t, err, "listen_tls.cert_file")
	cert, key := pair(t, 1)
	write(t, files.Cert, cert)
	write(t, files.Key, key)
	address := serveTLS(t, files)
	got, err := number(t, address, &tls.Config{})
	require.NoError(t, err)
	require.EqualValues(t, 1, got)

	cert, key = pair(t, 1000)
	write(t, files.Cert, cert)
	got, err = number(t, address, &tls.Config{})
	require.NoError(t, err)
	require.EqualValues(t, 1, got, "half a rotation changes nothing")
	write(t, files.Key, key)
	got, err = number(t, address, &tls.Config{})
	require.NoError(t, err)
	require.EqualValues(t, 1000, got)
	require.NoError(t, os.Remove(files.Key))
	_, err = number(t, address, &tls.Config{})
	require.NoError(t, err)
}

func TestClientCertificateIsRequired(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	files := rpc.CertificateFiles{
		Cert: filepath.Join(folder, "tls.crt"), Key: filepath.Join(folder, "tls.key"),
		ClientCA: filepath.Join(folder, "ca.crt")}
	cert, key := pair(t, 1)
	write(t, files.Cert, cert)
	write(t, files.Key, key)
	write(t, files.ClientCA, []byte("nothing"))
	_, err := rpc.OpenCertificate(files)
	require.ErrorContains(t, err, "listen_tls.client_ca_file")
	mine, mineKey := pair(t, 2)
	write(t, files.ClientCA, mine)
	address := serveTLS(t, files)
	_, err = number(t, address, &tls.Config{})
	require.Error(t, err)
	theirs, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	_, err = number(t, address, &tls.Config{Certificates: []tls.Certificate{theirs}})
	require.Error(t, err)
	known, err := tls.X509KeyPair(mine, mineKey)
	require.NoError(t, err)
	got, err := number(t, address, &tls.Config{Certificates: []tls.Certificate{known}})
	require.NoError(t, err)
	require.EqualValues(t, 1, got)
}
