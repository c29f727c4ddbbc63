package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/exaring/otelpgx"
	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// Tracing exports spans to an OpenTelemetry collector. The spans are of requests of clients, and of
// the requests to kube-apiserver and the SQL statements that a client request causes. A nil
// *Tracing does nothing.
type Tracing struct{ provider *sdktrace.TracerProvider }

// StartTracing starts the export if the environment variable OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT names a collector. Otherwise, or if OTEL_SDK_DISABLED is "true",
// it returns nil. OpenTelemetry's specification defines these variables.
func StartTracing(ctx context.Context, version string) (*Tracing, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" || os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return nil, nil
	}
	exporter, err := newExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("create the trace exporter: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("paddock-apiserver"), semconv.ServiceVersion(version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return &Tracing{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))}, nil
}

func newExporter(ctx context.Context) (*otlptrace.Exporter, error) {
	switch protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf"); protocol {
	case "http/protobuf":
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL or OTEL_EXPORTER_OTLP_PROTOCOL: %q is not supported; set http/protobuf or grpc", protocol)
	}
}

// stop exports the remaining spans and ends the export.
func (t *Tracing) stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// handler traces requests. Spans have the path, with ids, but not the query, which may contain
// names and birth dates.
func (t *Tracing) handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return otelhttp.NewHandler(named(next), "request", t.options()...)
}

// resources traces requests for resources of the aggregated API. It omits kube-apiserver's requests
// for discovery and OpenAPI, which come every few seconds.
func (t *Tracing) resources(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	ofResource := otelhttp.WithFilter(func(r *http.Request) bool {
		info, found := request.RequestInfoFrom(r.Context())
		return found && info.IsResourceRequest
	})
	return otelhttp.NewHandler(named(next), "request", append(t.options(), ofResource)...)
}

// named names spans after their routes or, without a route, after verb and resource.
func named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route := chi.NewRouteContext()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, route)))
		span := trace.SpanFromContext(r.Context())
		if pattern := route.RoutePattern(); pattern != "" {
			span.SetName(r.Method + " " + pattern)
			span.SetAttributes(semconv.HTTPRoute(pattern))
		} else if info, found := request.RequestInfoFrom(r.Context()); found {
			span.SetName(strings.TrimSuffix(info.Verb+" "+info.Resource+"/"+info.Subresource, "/"))
		}
	})
}

// Client changes config so that requests to kube-apiserver are traced if they belong to a traced
// request.
func (t *Tracing) Client(config *rest.Config) {
	if t == nil {
		return
	}
	ofRequest := otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanContextFromContext(r.Context()).IsValid() })
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(next, append(t.options(), ofRequest)...)
	})
}

func (t *Tracing) options() []otelhttp.Option {
	return []otelhttp.Option{
		otelhttp.WithFilter(hasKnownMethod), otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(propagation.TraceContext{}), otelhttp.WithMeterProvider(noop.NewMeterProvider()),
	}
}

// hasKnownMethod reports whether a request has one of the usual methods. Requests with other methods
// are not traced, because a span has the method, and the client can choose any text as a method.
func hasKnownMethod(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return true
	default:
		return false
	}
}

// Statements returns a tracer of SQL statements, or nil if t is nil. The spans do not contain the
// arguments of statements, because arguments contain data of records.
func (t *Tracing) Statements() pgx.QueryTracer {
	if t == nil {
		return nil
	}
	return otelpgx.NewTracer(otelpgx.WithTracerProvider(t.provider), otelpgx.WithQuerySpanNamePrefix(), otelpgx.WithDisableSQLStatementInAttributes())
}
