// Prometheus without its web interface, which is nearly half of what there is to compile: it reads a
// configuration, finds and scrapes targets, and evaluates rules, and queries about what it has.
// Each line on standard input is an expression; the result is a line of JSON: the series of the
// vector, or an error. It ends when its input ends.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	_ "github.com/prometheus/prometheus/discovery/kubernetes" // Registers itself.
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: prometheus CONFIGURATION DIRECTORY")
		os.Exit(2)
	}
	logger := promslog.New(&promslog.Config{Writer: os.Stderr})
	query, err := start(os.Args[1], os.Args[2], logger)
	check(err)
	results := json.NewEncoder(os.Stdout)
	expressions := bufio.NewScanner(os.Stdin)
	for expressions.Scan() {
		check(results.Encode(evaluate(query, expressions.Text())))
	}
	check(expressions.Err())
}

// As cmd/prometheus puts the same parts together.
func start(file, directory string, logger *slog.Logger) (rules.QueryFunc, error) {
	ctx, registry := context.Background(), prometheus.NewRegistry()
	settings, err := config.LoadFile(file, false, logger)
	if err != nil {
		return nil, err
	}
	database, err := tsdb.Open(directory, logger, registry, tsdb.DefaultOptions(), nil)
	if err != nil {
		return nil, err
	}
	parser := parser.NewParser(parser.Options{})
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: logger, Reg: registry, Parser: parser,
		MaxSamples: 50_000_000, Timeout: 2 * time.Minute, LookbackDelta: 5 * time.Minute,
		EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 {
			return time.Duration(settings.GlobalConfig.EvaluationInterval).Milliseconds()
		},
	})
	query := rules.EngineQueryFunc(engine, database)
	evaluation := rules.NewManager(&rules.ManagerOptions{
		Appendable: database, Queryable: database, QueryFunc: query, Parser: parser,
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Context:    ctx, ExternalURL: &url.URL{}, Registerer: registry, Logger: logger,
		DefaultRuleQueryOffset: func() time.Duration { return 0 },
	})
	every := time.Duration(settings.GlobalConfig.EvaluationInterval)
	external := settings.GlobalConfig.ExternalLabels
	if err := evaluation.Update(every, settings.RuleFiles, external, "", nil); err != nil {
		return nil, err
	}
	go evaluation.Run()
	return query, watch(ctx, settings, database, registry, logger)
}

// Finds targets and scrapes them.
func watch(
	ctx context.Context, settings *config.Config, database *tsdb.DB, registry prometheus.Registerer,
	logger *slog.Logger,
) error {
	metrics, err := discovery.CreateAndRegisterSDMetrics(registry)
	if err != nil {
		return err
	}
	targets := discovery.NewManager(ctx, logger, registry, metrics)
	scrapes, err := scrape.NewManager(&scrape.Options{}, logger, nil, nil, database, registry)
	if err != nil {
		return err
	}
	if err := scrapes.ApplyConfig(settings); err != nil {
		return err
	}
	jobs := make(map[string]discovery.Configs)
	for _, job := range settings.ScrapeConfigs {
		jobs[job.JobName] = job.ServiceDiscoveryConfigs
	}
	if err := targets.ApplyConfig(jobs); err != nil {
		return err
	}
	go func() { check(targets.Run()) }()
	go func() { check(scrapes.Run(targets.SyncCh())) }()
	return nil
}

type sample struct {
	Labels map[string]string `json:"labels"`
}

type queryResult struct {
	Samples []sample `json:"samples"`
	Error   string   `json:"error,omitempty"`
}

func evaluate(query rules.QueryFunc, expression string) queryResult {
	vector, err := query(context.Background(), expression, time.Now())
	if err != nil {
		return queryResult{Error: err.Error()}
	}
	samples := make([]sample, 0, len(vector))
	for _, found := range vector {
		samples = append(samples, sample{found.Metric.Map()})
	}
	return queryResult{Samples: samples}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
