package main

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

// tracing tells a collector of OpenTelemetry what requests do: the facade's own, those that
// they make of the cluster, and their statements. Nil, it does nothing and costs nothing.
type tracing struct{ provider *sdktrace.TracerProvider }

// startTracing traces where the environment names a collector, in the variables of
// OpenTelemetry's specification: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER and so on.
func startTracing(ctx context.Context) (*tracing, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" || os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return nil, nil
	}
	exporter, err := newExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("export traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("paddock-apiserver"), semconv.ServiceVersion(version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return &tracing{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))}, nil
}

func newExporter(ctx context.Context) (*otlptrace.Exporter, error) {
	switch protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf"); protocol {
	case "http/protobuf":
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %q is neither http/protobuf nor grpc", protocol)
	}
}

// stop sends what has not been sent.
func (t *tracing) stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// handler traces requests. Spans tell the path, with ids in it, and never the query, which
// may hold names and birth dates.
func (t *tracing) handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return otelhttp.NewHandler(named(next), "request", t.options()...)
}

// resources traces requests of the aggregated API for resources. Those of kube-apiserver for
// what it has to know of the API come every few seconds and tell nothing.
func (t *tracing) resources(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	ofResource := otelhttp.WithFilter(func(r *http.Request) bool {
		info, found := request.RequestInfoFrom(r.Context())
		return found && info.IsResourceRequest
	})
	return otelhttp.NewHandler(named(next), "request", append(t.options(), ofResource)...)
}

// named names spans after routes, or after verbs and resources where there are no routes.
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

// client traces what requests ask of the cluster.
func (t *tracing) client(config *rest.Config) {
	if t == nil {
		return
	}
	ofRequest := otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanContextFromContext(r.Context()).IsValid() })
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(next, append(t.options(), ofRequest)...)
	})
}

func (t *tracing) options() []otelhttp.Option {
	return []otelhttp.Option{
		otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(propagation.TraceContext{}), otelhttp.WithMeterProvider(noop.NewMeterProvider()),
	}
}

// statements traces what is asked of databases. Values are arguments, which it does not tell.
func (t *tracing) statements() pgx.QueryTracer {
	if t == nil {
		return nil
	}
	return otelpgx.NewTracer(otelpgx.WithTracerProvider(t.provider), otelpgx.WithQuerySpanNamePrefix(), otelpgx.WithDisableSQLStatementInAttributes())
}
