package rpc

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"github.com/klauspost/compress/gzip"

	"github.com/signalbox-dev/signalbox/api"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
	"github.com/signalbox-dev/signalbox/internal/rpc/rest"
)

const welcome = `Signalbox

/v1/                    the API over REST; for example GET /v1/version
/openapi.yaml           its description, from which clients can be generated
/signalbox.v1.*/        the API over gRPC, gRPC-Web and Connect
/grpc.reflection.v1.*/  its description, for grpcurl
/livez /readyz          health
/metrics                metrics for Prometheus
`

// unrouted is the pattern of the paths that no other pattern matches.
const unrouted = "/"

// routes returns the handler of all paths of the port.
func (o Options) routes(access *permission.AuthMiddleware, stop *stopping) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	services := o.services(access, stop)
	names := make([]string, 0, len(services)+1)
	for _, s := range services {
		names = append(names, s.Path[1:len(s.Path)-1])
		mux.Handle(s.Path, apierror.Handler(s.Handler, o.MaxRequestBytes))
	}
	paths, err := rest.New(services,
		rest.Options{MaxRequestBytes: o.MaxRequestBytes, CompressFrom: compressFrom, EventLimits: o.EventLimits})
	if err != nil {
		return nil, err
	}
	mux.Handle("/v1/", paths)
	if o.Codec.Handler != nil {
		mux.Handle(o.Codec.Path, o.Codec.Handler)
	}

	limited := connect.WithReadMaxBytes(int(o.MaxRequestBytes))
	mux.Handle(grpchealth.NewHandler(checker{serving: o.Serving, names: names, stopping: stop}, limited))
	reflector := grpcreflect.NewStaticReflector(append(names, grpchealth.HealthV1ServiceName)...)
	mux.Handle(grpcreflect.NewHandlerV1(reflector, limited))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector, limited))

	for path, h := range map[string]http.Handler{
		"/metrics": o.Metrics, "/livez": o.Livez, "/readyz": o.readiness(access)} {
		if h != nil {
			mux.Handle(path, readOnly(h))
		}
	}
	mux.Handle("/openapi.yaml", readOnly(http.HandlerFunc(writeDocument)))
	missing := http.HandlerFunc(notFound)
	mux.Handle("/{$}", readOnly(o.home()))
	if o.UI == nil {
		mux.Handle(unrouted, missing)
	} else {
		mux.Handle(unrouted, o.pages(missing))
	}
	return mux, nil
}

// readiness returns the handler of /readyz, which needs no token. Its answer has the texts of errors only for viewers
// of all projects, because they contain addresses.
func (o Options) readiness(access *permission.AuthMiddleware) http.Handler {
	if o.Readyz == nil {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if access.May(r, auth.Everywhere, auth.Viewer) {
			r = r.WithContext(health.WithErrors(r.Context()))
		}
		o.Readyz.ServeHTTP(w, r)
	})
}

// home returns the handler of the path "/": the UI for browsers, the list of paths for all others.
func (o Options) home() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		if o.UI != nil && isNavigation(r) {
			o.UI.Handler(http.HandlerFunc(notFound)).ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, welcome) // fails only if the caller disconnected
	})
}

// writeDocument sends the OpenAPI document.
func writeDocument(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	http.ServeContent(w, r, "openapi.yaml", time.Time{}, strings.NewReader(api.OpenAPI()))
}

// pages returns the handler of the other paths of the UI, and of all that do not exist: a browser gets a page for
// these.
func (o Options) pages(missing http.Handler) http.Handler {
	ui := readOnly(o.UI.Handler(missing))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.UI.Serves(r.URL.Path) {
			ui.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Vary", "Accept")
		if isNavigation(r) {
			o.UI.NotFound(w, r)
			return
		}
		missing.ServeHTTP(w, r)
	})
}

// services returns the services of the API, each with the same codecs, limits and interceptors.
func (o Options) services(access *permission.AuthMiddleware, stop *stopping) []handler.Service {
	options := connect.WithHandlerOptions(
		connect.WithCodec(binaryCodec{}),
		connect.WithCodec(jsonCodec{jsoncodec.NewConnect(jsoncodec.Name)}),
		connect.WithCodec(jsonCodec{jsoncodec.NewConnect(jsoncodec.NameCharset)}),
		connect.WithReadMaxBytes(int(o.MaxRequestBytes)),
		connect.WithCompressMinBytes(compressFrom),
		connect.WithCompression("gzip", newDecompressor, newCompressor),
		connect.WithInterceptors(rest.NewInterceptor()),
		connect.WithInterceptors(
			append(slices.Clone(o.Interceptors), &calls{timeout: o.CallTimeout, stopping: stop},
				fieldInterceptor{newFieldTable()}, o.permissionInterceptor())...),
	)
	return handler.New(handler.Options{
		Services: o.Services, Sessions: o.Sessions, Verify: access.Verify, Encrypted: o.TLS != nil, Connect: options,
	})
}

// permissionInterceptor returns the interceptor that checks permissions.
func (o Options) permissionInterceptor() connect.Interceptor {
	options := permission.InterceptorOptions{Denied: o.Access.Denied}
	if o.Access.Authenticator != nil {
		options.CheckValid = func(ctx context.Context, a auth.Actor) error {
			if a.Session != "" {
				return o.Sessions.CheckValid(ctx, a.Session)
			}
			return o.Access.Authenticator.CheckValid(ctx, a.ID)
		}
	}
	return permission.NewInterceptor(options)
}

// compressFrom is the size in bytes from which responses are compressed for clients that accept it.
const compressFrom = 1 << 10

func newDecompressor() connect.Decompressor { return &gzip.Reader{} }

// newCompressor prefers speed to size: the processor time of a large answer is mostly its compression.
func newCompressor() connect.Compressor {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}

// checker answers grpc.health.v1.Health.
type checker struct {
	serving  func(context.Context) bool
	names    []string
	stopping *stopping
}

// Check reports whether a service, or with an empty name the server, is available.
func (c checker) Check(ctx context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	known := req.Service == ""
	for _, name := range c.names {
		known = known || name == req.Service
	}
	if !known {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no service %q here", req.Service))
	}
	if c.stopping.begun() || (c.serving != nil && !c.serving(ctx)) {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}
