package explorer

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/mesh/watch"
)

const watchFiles = "../deploy/chart/files/"

// watched is a server of /metrics that has seen rounds of four nodes in two zones, of which one
// loses probes.
func watched(t *testing.T) *httptest.Server {
	t.Helper()
	m := watch.NewMetrics()
	srv := httptest.NewServer(m)
	t.Cleanup(srv.Close)
	var nodes []mesh.Node
	for i, name := range []string{"a", "b", "c", "d"} {
		nodes = append(nodes, mesh.Node{Name: name, Zone: []string{"east", "west"}[i%2]})
	}
	plan := mesh.RoundPlan(nodes, time.Minute, 1)
	var figures []mesh.Figure
	for from := range nodes {
		for to := range nodes {
			if from != to {
				f := mesh.Figure{Pair: mesh.Pair{From: from, To: to}, Path: mesh.Pod, Probes: 300, Values: map[mesh.Metric]float64{mesh.RTT: 1e-4 * float64(from+1), mesh.MTU: 1450, mesh.Loss: 0}}
				if from == 2 {
					f.Values[mesh.Loss] = 0.02
				}
				figures = append(figures, f)
			}
		}
	}
	slow := mesh.Place{Kind: mesh.Sender, From: "c", Path: mesh.Pod, Metric: mesh.Loss, Value: 0.02}
	m.Saw(nodes, figures)
	m.Ended(&plan, figures, mesh.NewReport(nodes, figures, []mesh.Place{slow}), []mesh.Place{slow}, []watch.Event{{Change: watch.Slow, Place: slow}})
	return srv
}

// watchQueries are the expressions of the rules and of the dashboard.
func watchQueries(t *testing.T) (rules, panels map[string]string) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert string
				Expr  string
			}
		}
	}
	b, err := os.ReadFile(watchFiles + "watch-rules.yaml")
	if err == nil {
		err = yaml.Unmarshal(b, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	rules, panels = map[string]string{}, map[string]string{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules[r.Alert] = r.Expr
		}
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if b, err = os.ReadFile(watchFiles + "watch-dashboard.json"); err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			panels[p.Title+" "+target.RefID] = strings.NewReplacer("$__rate_interval", "4m", "$path", "pod").Replace(target.Expr)
		}
	}
	if len(rules) < 5 || len(panels) < 10 {
		t.Fatalf("%d rules, %d queries of panels", len(rules), len(panels))
	}
	return rules, panels
}

// TestWatchQueries: the rules and the dashboard ask for metrics that a watch has.
func TestWatchQueries(t *testing.T) {
	resp, err := http.Get(watched(t).URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	rules, panels := watchQueries(t)
	for _, list := range []map[string]string{rules, panels} {
		for name, query := range list {
			for _, metric := range metricName.FindAllString(query, -1) {
				if !strings.Contains(string(text), "\n"+metric+"{") && !strings.Contains(string(text), "\n"+metric+" ") {
					t.Errorf("%s: a watch has no %s", name, metric)
				}
			}
		}
	}
}

// TestWatchScraped: VictoriaMetrics scrapes a watch's /metrics, finds what the dashboard asks for,
// and takes the rules.
func TestWatchScraped(t *testing.T) {
	source := watched(t)
	config := filepath.Join(t.TempDir(), "scrape.yml")
	target := strings.TrimPrefix(source.URL, "http://")
	text := "scrape_configs:\n- job_name: watch\n  scrape_interval: 1s\n  static_configs:\n  - targets: ['" + target + "']\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, "-promscrape.config="+config)
	want := `cnibench_mesh_slow{kind="sender",from="c",metric="loss"}`
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if flush, err := http.Get(s.base + "/internal/force_flush"); err == nil {
			flush.Body.Close()
		}
		var data struct{ Result []any }
		if err := s.get("/api/v1/query", url.Values{"query": {want}}, &data); err == nil && len(data.Result) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s after two minutes of scrapes", want)
		}
	}
	rules, panels := watchQueries(t)
	for name, query := range panels {
		if _, err := s.vector(query, time.Now()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, query := range rules {
		if _, err := s.vector(query, time.Now()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	got, err := s.vector(`cnibench_mesh_node_rtt_ratio{path="pod",node="c",direction="send"}`, time.Now())
	if err != nil || len(got) != 1 {
		t.Errorf("the heat map's series: %v, %v", got, err)
	}
	if vmalert, err := exec.LookPath("vmalert"); err == nil {
		if out, err := exec.CommandContext(t.Context(), vmalert, "-dryRun", "-rule="+watchFiles+"watch-rules.yaml").CombinedOutput(); err != nil {
			t.Errorf("vmalert: %v\n%s", err, out)
		}
	}
}
