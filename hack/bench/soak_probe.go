package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"
	"k8s.io/client-go/rest"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

var goroutinesMetric = regexp.MustCompile(`(?m)^go_goroutines (\S+)$`)

// etcdSizeMetric matches the size of etcd's data in kube-apiserver's metrics.
var etcdSizeMetric = regexp.MustCompile(`(?m)^apiserver_storage_size_bytes\{[^}]*\} (\S+)$`)

// soakProbe reads the figures of a sample.
type soakProbe struct {
	in   installation
	conn *pgx.Conn
	// names are the names of the figures in the order of the report.
	names []string
}

func newSoakProbe(ctx context.Context, in installation, server *localpostgres.Server) (*soakProbe, error) {
	conn, err := pgx.Connect(ctx, server.URL("demo"))
	if err != nil {
		return nil, err
	}
	p := &soakProbe{in: in, conn: conn}
	for _, gauge := range soakGauges[:3] {
		for _, program := range p.programs() {
			p.names = append(p.names, program.name+": "+gauge.name)
		}
	}
	for _, gauge := range soakGauges[3:] {
		p.names = append(p.names, gauge.name)
	}
	return p, nil
}

func (p *soakProbe) close() { _ = p.conn.Close(context.Background()) }

type program struct {
	name    string
	process *localcluster.Process
	metrics string
}

func (p *soakProbe) programs() []program {
	paddock := p.in.paddock
	return []program{
		{"API server", paddock.APIServers[0], paddock.HealthURLs[0] + "/metrics"},
		{"delivery process", paddock.Deliveries[0], paddock.DeliveryURLs[0] + "/metrics"},
		{"controller", paddock.Controllers[0], paddock.ControllerURLs[0] + "/metrics"},
	}
}

// sample returns all figures except the bytes of data.
func (p *soakProbe) sample(ctx context.Context) (map[string]float64, error) {
	figures := map[string]float64{}
	for _, program := range p.programs() {
		if !program.process.Running() {
			return nil, fmt.Errorf("the %s has ended; the end of its log: %s", program.name, lastLine(program.process.LogFile()))
		}
		text, err := fetch(ctx, program.metrics)
		if err != nil {
			return nil, err
		}
		for i, metric := range []*regexp.Regexp{memoryMetric, goroutinesMetric} {
			value, err := metricValue(metric, text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", program.metrics, err)
			}
			figures[program.name+": "+soakGauges[i].name] = value
		}
		process, err := procfs.NewProc(program.process.Pid())
		if err != nil {
			return nil, err
		}
		open, err := process.FileDescriptorTargets()
		if err != nil {
			return nil, err
		}
		for _, target := range open {
			if strings.HasPrefix(target, "socket:") {
				figures[program.name+": "+soakGauges[2].name]++
			}
		}
	}
	var sessions float64
	err := p.conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'").Scan(&sessions)
	figures[soakGauges[3].name] = sessions
	return figures, err
}

// data returns the bytes of data of both storages.
func (p *soakProbe) data(ctx context.Context) (float64, error) {
	var database float64
	if err := p.conn.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&database); err != nil {
		return 0, err
	}
	config := p.in.cluster.Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	text, err := fetchWith(ctx, client, config.Host+"/metrics")
	if err != nil {
		return 0, err
	}
	etcd, err := metricValue(etcdSizeMetric, text)
	return database + etcd, err
}

// metricValue returns the value of a metric.
func metricValue(metric *regexp.Regexp, text []byte) (float64, error) {
	found := metric.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("there is no metric %s", metric)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// lastLine returns the last line of a file, or why it cannot be read.
func lastLine(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(lines[len(lines)-1])
}
