package explorer

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// given is a run of one's own that TestRoundTrip imports, too:
// go test ./explorer -run RoundTrip -given DIR
var given = flag.String("given", "", "a run `directory` to import besides the test's own")

// server is a VictoriaMetrics of the test's own.
type server struct {
	t    *testing.T
	base string
}

// startServer starts Debian's victoria-metrics on a free port of loopback; it
// ends with the test.
func startServer(t *testing.T, more ...string) *server {
	t.Helper()
	program, err := exec.LookPath("victoria-metrics")
	if err != nil {
		needs.Missing(t, "needs victoria-metrics; install it with: scripts/setup test")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	var log bytes.Buffer
	c := exec.CommandContext(t.Context(), program, append(composed(t, program), "-httpListenAddr="+addr,
		"-storageDataPath="+t.TempDir(), "-memory.allowedBytes=128MB", "-loggerLevel=WARN")...)
	c.Args = append(c.Args, more...)
	c.Stdout, c.Stderr = &log, &log
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 20 * time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = c.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("victoria-metrics said:\n%s", log.String())
		}
	})
	s := &server{t, "http://cnibench:" + testKey + "@" + addr}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get(s.base + "/health"); err == nil {
			resp.Body.Close()
			return s
		}
		select {
		case <-ended:
			t.Fatalf("victoria-metrics did not start:\n%s", log.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("victoria-metrics does not answer")
		}
	}
}

// testKey stands for the EXPLORER_KEY of a user.
const testKey = "a-key-of-the-test"

// composed are the flags of docker-compose.yml that the program knows: Debian's
// is older than the image.
func composed(t *testing.T, program string) []string {
	t.Helper()
	var doc struct {
		Services map[string]struct{ Command []string }
	}
	readYAML(t, "docker-compose.yml", &doc)
	help, err := exec.CommandContext(t.Context(), program, "-help").CombinedOutput()
	if len(help) == 0 {
		t.Fatal(err) // it does say what it knows, and fails nevertheless
	}
	var flags []string
	for _, f := range doc.Services["victoriametrics"].Command {
		name, _, _ := strings.Cut(strings.TrimLeft(f, "-"), "=")
		if name != "storageDataPath" && strings.Contains(string(help), "  -"+name) {
			flags = append(flags, regexp.MustCompile(`\$\{EXPLORER_KEY[^}]*\}`).ReplaceAllString(f, testKey))
		}
	}
	return flags
}

// testStrangers: without the key there is nothing to read, to write or to
// remove, and removing asks for it even who may read.
func testStrangers(t *testing.T, s *server) {
	_, address, _ := strings.Cut(s.base, "@")
	all := url.Values{"match[]": {`{run!=""}`}}
	for _, test := range []struct {
		base, path string
		form       url.Values
	}{
		{"http://" + address, "/api/v1/query", url.Values{"query": {"cnibench_run_info"}}},
		{"http://" + address, "/api/v1/export", all},
		{"http://" + address, "/api/v1/import/prometheus", nil},
		{"http://" + address, "/api/v1/admin/tsdb/delete_series", all},
		{"http://" + address, "/snapshot/create", nil},
		{s.base, "/api/v1/admin/tsdb/delete_series", all},
		{s.base, "/snapshot/create", nil},
	} {
		resp, err := http.PostForm(test.base+test.path, test.form)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode/100 != 4 {
			t.Errorf("%s answers a stranger: %s", test.path, resp.Status)
		}
	}
}

// load imports the text as the README says, and makes it readable at once.
func (s *server) load(text []byte) {
	s.t.Helper()
	resp, err := http.Post(s.base+"/api/v1/import/prometheus", "text/plain", bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		s.t.Fatalf("import: %s: %s", resp.Status, readAll(s.t, resp.Body, "import"))
	}
	flush, err := http.Get(s.base + "/internal/force_flush")
	if err != nil {
		s.t.Fatal(err)
	}
	flush.Body.Close()
}

// get asks the query API and decodes the answer's data.
func (s *server) get(path string, params url.Values, data any) error {
	resp, err := http.PostForm(s.base+path, params)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", resp.Status, answer.Error)
	}
	return nil
}

// vector is the answer to an instant query, by labels; all labels but those
// left out make the key.
func (s *server) vector(query string, at time.Time) (map[string]float64, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	params := url.Values{"query": {query}, "time": {strconv.FormatInt(at.Unix(), 10)}}
	if err := s.get("/api/v1/query", params, &data); err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for _, r := range data.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			return nil, err
		}
		values[key(r.Metric)] = v
	}
	return values, nil
}

func (s *server) want(query string, at time.Time) map[string]float64 {
	s.t.Helper()
	v, err := s.vector(query, at)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return v
}

func key(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%s=%q ", name, labels[name])
	}
	return b.String()
}

// same is equality as far as the database keeps numbers: as decimals of twelve
// digits.
func same(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 2e-12*math.Max(math.Abs(a), math.Abs(b))
}

// after is when the run lies in the last hour.
var after = began.Add(59 * time.Minute)

func TestRoundTrip(t *testing.T) {
	s := startServer(t)
	dir := writeRun(t)
	s.load(command(t, "report", dir, "--format", "openmetrics"))
	t.Run("figures", func(t *testing.T) { testFigures(t, s, reportOf(t, dir)) })
	t.Run("rounds", func(t *testing.T) { testRounds(t, s, dir) })
	t.Run("recordings", func(t *testing.T) { testRecordings(t, s, dir) })
	t.Run("dashboards", func(t *testing.T) { testDashboards(t, s) })
	t.Run("strangers", func(t *testing.T) { testStrangers(t, s) })
	if *given != "" {
		s.load(command(t, "report", *given, "--format", "openmetrics"))
		t.Run("given", func(t *testing.T) { testFigures(t, s, reportOf(t, *given)) })
	}
}

// testFigures: what the query API gives equals the report's JSON, both ways.
func testFigures(t *testing.T, s *server, r *analysis.Report) {
	want := map[string]float64{}
	add := func(name, stat string, v float64, res analysis.Result, more map[string]string) {
		labels := map[string]string{"__name__": name, "run": r.Run.ID, "contender": res.Contender, "step": res.Step, "path": res.Path, "kernel": res.Kernel, "underlay": res.Underlay}
		if stat != "" {
			labels["stat"] = stat
		}
		maps.Copy(labels, more)
		want[key(labels)] = v
	}
	units := map[string]string{"bit/s": "_bits_per_second", "s": "_seconds", "1/s": "_per_second", "bytes": "_bytes", "1": "_ratio",
		"CPU-s/s": "_cpus", "CPU-s/Gbit": "_cpu_seconds_per_gigabit", "count": ""}
	for _, res := range r.Results {
		name := "cnibench_" + res.Metric + units[res.Unit]
		add(name, "median", res.Median, res, nil)
		if res.CI != nil {
			add(name, "low", res.CI[0], res, nil)
			add(name, "high", res.CI[1], res, nil)
		}
		of := map[string]string{"metric": res.Metric}
		if c := res.VsBaseline; c != nil {
			add("cnibench_vs_baseline_ratio", "ratio", c.Ratio, res, of)
			if c.CI != nil {
				add("cnibench_vs_baseline_ratio", "low", c.CI[0], res, of)
				add("cnibench_vs_baseline_ratio", "high", c.CI[1], res, of)
			}
		}
		if res.Tier > 0 {
			add("cnibench_tier", "", float64(res.Tier), res, of)
		}
	}
	if len(want) < 100 {
		t.Fatalf("the report has %d figures only", len(want))
	}
	compare(t, want, s.want(`{__name__=~"cnibench_.+",__name__!~"cnibench_(sample|recorder)_.+|cnibench_recording_info|cnibench_run_info",run="`+r.Run.ID+`"}`, r.Run.Started.Add(time.Second)))
}

// testRounds: the values of single rounds equal the sealed samples'.
func testRounds(t *testing.T, s *server, dir string) {
	rec, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{}
	for _, sample := range rec.Samples {
		want[key(map[string]string{"contender": sample.Contender, "step": sample.Step, "round": strconv.Itoa(sample.Round), "verdict": string(sample.Verdict),
			"path": sample.Path, "kernel": sample.Kernel, "underlay": sample.Underlay, "run": rec.Run.ID, "__name__": "cnibench_sample_goodput_bits_per_second"})] = sample.Metrics["goodput"]
	}
	compare(t, want, s.want("last_over_time(cnibench_sample_goodput_bits_per_second[1h])", after))
}

// testRecordings: every point of every series is there, under its sample's
// labels, and a rate is the one that was recorded.
func testRecordings(t *testing.T, s *server, dir string) {
	rec, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	samples := float64(len(rec.Samples))
	perNode := float64(len(nodes))
	got := s.want(`sum(count_over_time(node_cpu_seconds_total[1h]))`, after)
	if want := samples * perNode * 8 * snapshots; !same(got[""], want) {
		t.Errorf("points of node_cpu_seconds_total: %v, want %v", got[""], want)
	}
	one := rec.Samples[4]
	query := fmt.Sprintf(`sum by (mode) (rate(node_cpu_seconds_total{run=%q,contender=%q,step=%q,round="%d",node="node2",cpu="1"}[4s]))`, rec.Run.ID, one.Contender, one.Step, one.Round)
	want := map[string]float64{}
	for i, labels := range labelSets([]string{"cpu", "mode"}) {
		if labels["cpu"] == "1" {
			want[key(map[string]string{"mode": labels["mode"]})] = slope(i)
		}
	}
	compare(t, want, s.want(query, one.Started.Add((snapshots-1)*time.Second)))
}

// testDashboards runs every query of the dashboards; each must find something.
func testDashboards(t *testing.T, s *server) {
	fill := func(query, step string) string {
		return strings.NewReplacer("$__range", "1h", "$__interval", "10s", "$__rate_interval", "4s",
			"$run", runID, "$underlay", ".*", "$metric", "goodput", "$contender", contender, "$step", step, "$round", "1", "$node", "node1").Replace(query)
	}
	during := began.Add(100*time.Second + 6*time.Second) // round 1, flannel-vxlan, dts: the fifth sample
	for file, d := range dashboards(t) {
		step := "dts"
		if d.UID == "cnibench-all" {
			step = ".*" // the variable is preset to all steps
		}
		for _, v := range d.Templating.List {
			inside, ok := strings.CutPrefix(v.Query.Query, "label_values(")
			i := strings.LastIndex(inside, ", ")
			if !ok || i < 0 {
				t.Errorf("%s: variable %s: %q", file, v.Name, v.Query.Query)
				continue
			}
			var values []string
			params := url.Values{"match[]": {fill(inside[:i], step)}, "start": {strconv.FormatInt(began.Unix()-60, 10)}, "end": {strconv.FormatInt(after.Unix(), 10)}}
			err := s.get("/api/v1/label/"+strings.TrimSuffix(inside[i+2:], ")")+"/values", params, &values)
			if err != nil || len(values) == 0 {
				t.Errorf("%s: variable %s: values %v, %v", file, v.Name, values, err)
			}
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				at := after
				if !target.Instant {
					at = during
				}
				query := fill(target.Expr, step)
				if strings.Contains(target.Expr, "[$__interval]") {
					at = began.Add(100*time.Second + 5*time.Second) // when that sample began, and a bit
				}
				got, err := s.vector(query, at)
				if err != nil {
					t.Errorf("%s: %s: %s: %v", file, p.Title, query, err)
				}
				if len(got) == 0 {
					t.Errorf("%s: %s: nothing found by %s", file, p.Title, query)
				}
			}
		}
	}
}

func compare(t *testing.T, want, got map[string]float64) {
	t.Helper()
	wrong := 0
	tell := func(format string, args ...any) {
		if wrong++; wrong <= 10 {
			t.Errorf(format, args...)
		}
	}
	for k, w := range want {
		if g, ok := got[k]; !ok || !same(g, w) {
			tell("%s: got %v (found: %v), want %v", k, g, ok, w)
		}
	}
	for k, g := range got {
		if _, ok := want[k]; !ok {
			tell("%s: %v is not in the report", k, g)
		}
	}
	if wrong > 10 {
		t.Errorf("and %d more", wrong-10)
	}
}
