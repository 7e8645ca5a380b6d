package explorer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// dashboard is what the tests look at of Grafana's JSON.
type dashboard struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name       string     `json:"name"`
			Datasource datasource `json:"datasource"`
			Query      struct {
				Query string `json:"query"`
			} `json:"query"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID         int        `json:"id"`
		Title      string     `json:"title"`
		Datasource datasource `json:"datasource"`
		GridPos    struct{ X, Y, W, H int }
		Targets    []struct {
			RefID      string     `json:"refId"`
			Expr       string     `json:"expr"`
			Instant    bool       `json:"instant"`
			Datasource datasource `json:"datasource"`
		} `json:"targets"`
	} `json:"panels"`
}

type datasource struct{ Type, UID string }

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob("dashboards/*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("dashboards: %v, %v", files, err)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[file] = d
	}
	return all
}

var (
	metricName = regexp.MustCompile(`\b(?:cnibench|node)_[a-zA-Z0-9_:]+`)
	variable   = regexp.MustCompile(`\$(\w+)|\$\{(\w+)[}:]`)
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)
)

// exported are the names of the series that the text holds.
func exported(text []byte) map[string]bool {
	names := map[string]bool{}
	for _, m := range typeLine.FindAllSubmatch(text, -1) {
		suffix := map[string]string{"counter": "_total", "info": "_info"}[string(m[2])]
		names[string(m[1])+suffix] = true
	}
	return names
}

// TestDashboards: they name what is exported, the source that is provisioned,
// and only variables that they have.
func TestDashboards(t *testing.T) {
	names := exported(command(t, "report", writeRun(t), "--format", "openmetrics"))
	source := datasource{"prometheus", provisioned(t)}
	uids := map[string]bool{}
	for file, d := range dashboards(t) {
		if d.UID == "" || uids[d.UID] || d.Title == "" {
			t.Errorf("%s: uid %q is empty or taken, or no title", file, d.UID)
		}
		uids[d.UID] = true
		known := map[string]bool{"__range": true, "__interval": true, "__rate_interval": true}
		for _, v := range d.Templating.List {
			known[v.Name] = true
		}
		queries := map[string]string{}
		for _, v := range d.Templating.List {
			queries["variable "+v.Name] = v.Query.Query
			if v.Datasource != source {
				t.Errorf("%s: variable %s: source %v, want %v", file, v.Name, v.Datasource, source)
			}
		}
		ids, cells := map[int]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if ids[p.ID] || p.Title == "" || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: panel %d %q: id twice, no title, or off the grid", file, p.ID, p.Title)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if under := cells[[2]int{x, y}]; under != "" {
						t.Fatalf("%s: %q covers %q", file, p.Title, under)
					}
					cells[[2]int{x, y}] = p.Title
				}
			}
			for _, target := range p.Targets {
				queries[p.Title+" "+target.RefID] = target.Expr
				if target.Datasource != source || p.Datasource != source {
					t.Errorf("%s: %s: source %v, want %v", file, p.Title, target.Datasource, source)
				}
			}
		}
		for where, query := range queries {
			found := metricName.FindAllString(strings.ReplaceAll(query, `"cnibench_latency_(.+)_seconds"`, ""), -1)
			if len(found) == 0 {
				t.Errorf("%s: %s: no metric in %q", file, where, query)
			}
			for _, name := range found {
				if !names[name] && !isPattern(query, name, names) {
					t.Errorf("%s: %s: cnibench exports no %s", file, where, name)
				}
			}
			for _, m := range variable.FindAllStringSubmatch(query, -1) {
				if name := m[1] + m[2]; !known[name] && name != "1" {
					t.Errorf("%s: %s: no variable %s", file, where, name)
				}
			}
		}
	}
}

// isPattern says that the name begins a pattern on __name__ that matches.
func isPattern(query, name string, names map[string]bool) bool {
	_, after, ok := strings.Cut(query, `__name__=~"`)
	if !ok || !strings.HasPrefix(after, name) {
		return false
	}
	pattern, _, _ := strings.Cut(after, `"`)
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return false
	}
	for n := range names {
		if re.MatchString(n) {
			return true
		}
	}
	return false
}

// provisioned is the uid of the data source.
func provisioned(t *testing.T) string {
	t.Helper()
	var doc struct {
		Datasources []struct{ UID, Type, URL string }
	}
	readYAML(t, "provisioning/datasources/victoriametrics.yml", &doc)
	if len(doc.Datasources) != 1 {
		t.Fatalf("data sources: %v", doc.Datasources)
	}
	return doc.Datasources[0].UID
}

// TestCompose: images are pinned, nothing listens but on this machine, and no
// web site that is open there reads or changes anything.
func TestCompose(t *testing.T) {
	var doc struct {
		Services map[string]struct {
			Image       string
			Ports       []string
			Volumes     []string
			Command     []string
			Environment map[string]string
		}
	}
	readYAML(t, "docker-compose.yml", &doc)
	if len(doc.Services) != 2 {
		t.Errorf("services: %v", doc.Services)
	}
	if flags := doc.Services["victoriametrics"].Command; !slices.Contains(flags, "--http.disableCORS") {
		t.Errorf("any site may read what the database answers: %q", flags)
	}
	grafana := doc.Services["grafana"].Environment
	for name, want := range map[string]string{"GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer", "GF_AUTH_BASIC_ENABLED": "false", "GF_SERVER_DOMAIN": "127.0.0.1", "GF_SERVER_ENFORCE_DOMAIN": "true"} {
		if grafana[name] != want {
			t.Errorf("%s is %q, want %q", name, grafana[name], want)
		}
	}
	pinned := regexp.MustCompile(`^[a-z-]+/[a-z-]+:v?\d+\.\d+\.\d+$`)
	for name, s := range doc.Services {
		if !pinned.MatchString(s.Image) {
			t.Errorf("%s: image %s names no version", name, s.Image)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to other machines", name, p)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, err := os.Stat(from); strings.HasPrefix(from, ".") && err != nil {
				t.Errorf("%s: volume %s: %v", name, v, err)
			}
		}
	}
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
