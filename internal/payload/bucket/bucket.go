// Package bucket stores large payloads as objects of a bucket that is compatible with S3.
//
//	store, err := bucket.Open(bucket.Options{
//		Endpoint: "https://s3.eu-central-1.amazonaws.com", Region: "eu-central-1", Bucket: "payloads", …
//	}, payload.CallTimeout)
//	err = store.Put(ctx, runID, digest, value)
//
// Open connects to nothing. Requests are not repeated here: package codec does that, for as long as a workflow task may
// wait.
package bucket

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/signalbox-dev/signalbox/internal/payload"
)

const (
	// listTimeout bounds the requests that list one page of runs.
	listTimeout = time.Minute
	// oneAttempt is minio's number of attempts that switches its own retries off.
	oneAttempt = 1
	// idleConns is how many connections are kept open: as many operations as one worker has in flight.
	idleConns = 16
	// probe is the name, after the prefix, of the object by which Writable finds out whether objects can be written and
	// deleted.
	probe = "writable"
	// afterAll is greater than each character of a path: a listing that starts after RUN + "/" + afterAll begins with the
	// next run.
	afterAll = "~"
)

// Options name a bucket.
type Options struct {
	// Endpoint is the URL of the service: https://HOST[:PORT], or http:// without TLS.
	Endpoint string
	Region   string
	Bucket   string
	// Prefix begins the names of all objects.
	Prefix string
	// PathStyle requests ENDPOINT/BUCKET instead of BUCKET.ENDPOINT.
	PathStyle bool
	// AccessKeyFile and SecretKeyFile hold the credentials; they are read again after a minute.
	AccessKeyFile, SecretKeyFile string
	// CAFile has the authorities to trust, PEM; empty: the system's.
	CAFile string
}

// Store stores values in a bucket.
type Store struct {
	client *minio.Core
	o      Options
	// callTimeout bounds one operation on a value.
	callTimeout time.Duration
	// proven reports that the last write succeeded.
	proven atomic.Bool
}

var _ payload.Store = (*Store)(nil)

// Open returns the store in a bucket. It reads the files, and does not connect. Each operation on a value takes
// callTimeout at most, [payload.CallTimeout] in a server.
func Open(o Options, callTimeout time.Duration) (*Store, error) {
	endpoint, err := url.Parse(o.Endpoint)
	if err != nil || endpoint.Host == "" {
		return nil, fmt.Errorf("open the bucket of payloads: %q is not the URL of a service", o.Endpoint)
	}
	trusted, err := authorities(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("open the bucket of payloads: %w", err)
	}
	keys := &keyFiles{access: o.AccessKeyFile, secret: o.SecretKeyFile}
	if _, err := keys.Retrieve(); err != nil {
		return nil, fmt.Errorf("open the bucket of payloads: %w", err)
	}
	lookup := minio.BucketLookupDNS
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds: credentials.New(keys), Secure: endpoint.Scheme != "http", Region: o.Region, BucketLookup: lookup,
		MaxRetries: oneAttempt,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted},
			MaxIdleConnsPerHost: idleConns, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			DisableCompression: true, // values are sealed
		},
	})
	if err != nil {
		return nil, fmt.Errorf("open the bucket of payloads: %w", err)
	}
	return &Store{client: client, o: o, callTimeout: callTimeout}, nil
}

func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // for package tls: the system's
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%q holds no certificate in PEM form", file)
	}
	return pool, nil
}

// String implements [payload.Store].
func (s *Store) String() string { return fmt.Sprintf("bucket %q at %s", s.o.Bucket, s.o.Endpoint) }

// Put implements [payload.Store]. A value that exists is replaced by itself, with the present time.
func (s *Store) Put(ctx context.Context, runID, digest string, value []byte) error {
	if err := payload.TooLarge(runID, value); err != nil {
		return err
	}
	path, err := payload.Path(runID, digest)
	if err != nil {
		return fmt.Errorf("keep a payload: %w", err)
	}
	return s.do(ctx, "keep a payload", s.callTimeout, func(ctx context.Context) error {
		err := s.write(ctx, path, value)
		s.proven.Store(err == nil || ctx.Err() != nil && s.proven.Load())
		return err
	})
}

func (s *Store) write(ctx context.Context, path string, value []byte) error {
	_, err := s.client.Client.PutObject(ctx, s.o.Bucket, s.o.Prefix+path, bytes.NewReader(value), int64(len(value)),
		minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true})
	return err
}

// Get implements [payload.Store].
func (s *Store) Get(ctx context.Context, runID, digest string) (value []byte, found bool, err error) {
	path, err := payload.Path(runID, digest)
	if err != nil {
		return nil, false, nil //nolint:nilerr // Put refuses such a value, so it does not exist
	}
	err = s.do(ctx, "read a payload", s.callTimeout, func(ctx context.Context) error {
		object, _, _, err := s.client.GetObject(ctx, s.o.Bucket, s.o.Prefix+path, minio.GetObjectOptions{})
		if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
			return nil
		}
		if err != nil {
			return err
		}
		value, err = io.ReadAll(io.LimitReader(object, payload.MaxBytes+1))
		found = err == nil
		return errors.Join(err, object.Close())
	})
	return value, found, err
}

// Writable implements [payload.Store]. After a write that succeeded it only requests the bucket; otherwise it writes an
// object and deletes it, so that a bucket with versions does not fill with those of health checks.
func (s *Store) Writable(ctx context.Context) error {
	return s.do(ctx, "check that payloads can be kept", s.callTimeout, func(ctx context.Context) error {
		if s.proven.Load() {
			exists, err := s.client.BucketExists(ctx, s.o.Bucket)
			if err == nil && !exists {
				err = minio.ErrorResponse{Code: minio.NoSuchBucket}
			}
			s.proven.Store(err == nil)
			return err
		}
		err := s.write(ctx, probe, []byte("signalbox"))
		if err == nil {
			err = s.client.RemoveObject(ctx, s.o.Bucket, s.o.Prefix+probe, minio.RemoveObjectOptions{})
		}
		s.proven.Store(err == nil)
		return err
	})
}

// Stale implements [payload.Store]. A position is the path of a run.
func (s *Store) Stale(ctx context.Context, age time.Duration, after string,
	limit int) (runIDs []string, next string, err error) {
	before := time.Now().Add(-age)
	err = s.do(ctx, "list payloads", listTimeout, func(ctx context.Context) error {
		examined, last, taken, start := 0, "", false, s.o.Prefix
		if after != "" {
			start = s.o.Prefix + after + "/" + afterAll
		}
		for object := range s.client.ListObjectsIter(ctx, s.o.Bucket,
			minio.ListObjectsOptions{Prefix: s.o.Prefix, Recursive: true, StartAfter: start}) {
			if object.Err != nil {
				return object.Err
			}
			path, runID, ok := runOf(strings.TrimPrefix(object.Key, s.o.Prefix))
			if !ok || path <= after {
				continue
			}
			if path != last {
				if examined == limit {
					next = last
					return nil
				}
				examined, last, taken = examined+1, path, false
			}
			if !taken && object.LastModified.Before(before) {
				runIDs, taken = append(runIDs, runID), true
			}
		}
		return ctx.Err() // the listing ends without an error when ctx does
	})
	if err != nil {
		return nil, "", err
	}
	return runIDs, next, nil
}

// runOf returns the path and the run of an object; false for an object of something else.
func runOf(name string) (path, runID string, ok bool) {
	end := strings.LastIndexByte(name, '/')
	if end < 0 {
		return "", "", false
	}
	runID, ok = payload.RunOf(name[:end])
	return name[:end], runID, ok
}

// DeleteRun implements [payload.Store].
func (s *Store) DeleteRun(ctx context.Context, runID string) (deleted int64, err error) {
	path, err := payload.RunPath(runID)
	if err != nil {
		return 0, nil //nolint:nilerr // Put refuses such values, so there are none
	}
	var names []string
	err = s.do(ctx, "list payloads of a run", listTimeout, func(ctx context.Context) error {
		for object := range s.client.ListObjectsIter(ctx, s.o.Bucket,
			minio.ListObjectsOptions{Prefix: s.o.Prefix + path + "/", Recursive: true}) {
			if object.Err != nil {
				return object.Err
			}
			names = append(names, object.Key)
		}
		return ctx.Err()
	})
	for _, name := range names {
		if err != nil {
			break
		}
		err = s.do(ctx, "delete payloads", s.callTimeout, func(ctx context.Context) error {
			return s.client.RemoveObject(ctx, s.o.Bucket, name, minio.RemoveObjectOptions{})
		})
		if err == nil {
			deleted++
		}
	}
	return deleted, err
}

// do runs an operation within a timeout, and explains its error.
func (s *Store) do(ctx context.Context, doing string, timeout time.Duration,
	operation func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return payload.Unavailable(ctx, doing, s, explain(operation(limited)))
}

// explain adds to an answer of the service its code, and what an operator can do.
func explain(err error) error {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok || answer.Code == "" {
		return err
	}
	switch answer.Code {
	case minio.NoSuchBucket:
		return fmt.Errorf("the bucket does not exist: create it, or correct payloads.s3.bucket (%s)", answer.Code)
	case minio.AccessDenied:
		return fmt.Errorf("%s (%s): grant the user of payloads.s3.access_key_file the rights of docs/least-privilege.md",
			answer.Message, answer.Code)
	case "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return fmt.Errorf("%s (%s): check payloads.s3.access_key_file and secret_key_file", answer.Message, answer.Code)
	}
	return fmt.Errorf("%s (%s)", answer.Message, answer.Code)
}
