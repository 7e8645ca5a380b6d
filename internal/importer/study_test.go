package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// study makes a tree of the 2024 study's shape with made-up figures.
type study struct {
	configs   []string // baremetal takes the steps without Services
	rounds    int
	intervals int // of each test
	recorded  int // first so many configurations have recordings of idle servers
	snapshots int // of a recording
}

// step values by hand: distinct for every configuration, round and step.
func bandwidth(config, round, step int) float64 {
	return 1e9*float64(step+1) + 1e7*float64(config) + 1e6*float64(round*round) + 0.25
}

func (st study) write(t testing.TB, dir string) {
	t.Helper()
	for c, config := range st.configs {
		var csv, prom strings.Builder
		for round := 1; round <= st.rounds; round++ {
			run := filepath.Join(dir, config, fmt.Sprint(round))
			if err := os.MkdirAll(run, 0o755); err != nil {
				t.Fatal(err)
			}
			put := func(name, text string) {
				if err := os.WriteFile(filepath.Join(run, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var allResults strings.Builder
			for i, step := range steps2024 {
				if config == "baremetal" && step.Path == "service" {
					continue
				}
				key := strings.ToUpper(step.ID)
				var results strings.Builder
				for s, side := range sideNames {
					system, user, memory := 1.6+0.01*float64(i+c+s), 0.001*float64(round), 1.5e9+1e6*float64(c+round+s)
					side = strings.ToUpper(side)
					fmt.Fprintf(&results, "%s_%s_SYSTEM=%f\n%s_%s_USER=%f\n%s_%s_MEM=%.0f\n", key, side, system, key, side, user, key, side, memory)
					fmt.Fprintf(&csv, "%f\t%f\t%.0f\t", system, user, memory)
					label := fmt.Sprintf(`id="%s",run="%d",test="%s",role="%s"`, config, round, step.ID, strings.ToLower(side))
					fmt.Fprintf(&prom, "benchmark_cpu_seconds{%s,mode=\"system\"} %f 1704067200000\n", label, system)
					fmt.Fprintf(&prom, "benchmark_mem_bytes{%s} %.0f 1704067200000\n", label, memory)
					put(step.ID+"-"+strings.ToLower(side)+".stderr", "iperf3: interrupt - the server has terminated\n")
					put(step.ID+"-"+strings.ToLower(side)+".cmd", fmt.Sprintf("kubectl exec -it x --  statexec -f %s-%s.prom -d 10 -l id=%s -l run=%d -i %s -mst 1704067200000 --  true\n", step.ID, strings.ToLower(side), config, round, step.ID))
				}
				put(step.ID+"-server.stdout", "Server listening on 5201\n")
				if !step.idle() {
					bw := bandwidth(c, round, i)
					fmt.Fprintf(&results, "%s_BW=%v\n", key, bw)
					fmt.Fprintf(&csv, "%v\t", bw)
					if step.udp {
						fmt.Fprintf(&results, "%s_JITTER=0.0%d\n%s_LOST=%d.5\n", key, round, key, round)
						fmt.Fprintf(&csv, "0.0%d\t%d.5\t", round, round)
					} else {
						fmt.Fprintf(&results, "%s_RTS=%d\n", key, 100*round)
						fmt.Fprintf(&csv, "%d\t", 100*round)
					}
					put(step.ID+"-client.stdout", iperf3Report(step, bw, round, st.intervals, fmt.Sprintf("%d-%d-%d", c, round, i), 1706361599+int64(c*100_000+round*2_000+i*100)))
				} else if put("idle-client.stdout", ""); c < st.recorded {
					put("idle-server.prom", recording(config, round, st.snapshots, 16))
				}
				put(step.ID+".results", results.String())
				allResults.WriteString(results.String())
			}
			csv.WriteString("\n")
			put("all.results", allResults.String())
			if config != "baremetal" {
				put("info-client.uname", "Linux x 5.15.0-92-generic #102-Ubuntu SMP x86_64 GNU/Linux\n")
				put("info-client.interfaces", "1: lo: <UP> mtu 65536 qdisc noqueue\n2: eth0@if11: <UP> mtu 8950 qdisc noqueue\n")
				put("info-netpol", "Ingress\tEgress\nyes\tno\n")
			}
		}
		for name, text := range map[string]string{"results.prom": prom.String(), "results-spreadsheet.csv": csv.String()} {
			if err := os.WriteFile(filepath.Join(dir, config, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// iperf3Report is what iperf3 prints for the test.
func iperf3Report(step step2024, bw float64, round, intervals int, cookie string, at int64) string {
	protocol, extra := "TCP", fmt.Sprintf(`"retransmits": %d,`, 100*round)
	if step.udp {
		protocol, extra = "UDP", fmt.Sprintf(`"jitter_ms": 0.0%d, "lost_percent": %d.5,`, round, round)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `{"start": {"version": "iperf 3.16", "system_info": "Linux x 5.15.0-92-generic #102", "timestamp": {"timesecs": %d}, "cookie": "%s", "tcp_mss_default": 8898,
"test_start": {"protocol": "%s", "num_streams": %d, "blksize": 131072, "omit": 1, "duration": 60}},
"intervals": [`, at, cookie, protocol, step.streams)
	for i := range intervals {
		if i > 0 {
			b.WriteString(",\n")
		}
		b.WriteString(`{"streams": [`)
		for s := range step.streams {
			if s > 0 {
				b.WriteString(",\n")
			}
			fmt.Fprintf(&b, "\t\t\t\t{\n\t\t\t\t\t\"socket\":\t%d,\n\t\t\t\t\t\"start\":\t%d.000991,\n\t\t\t\t\t\"end\":\t%d.000974,\n\t\t\t\t\t\"seconds\":\t0.99998301267623901,\n\t\t\t\t\t\"bytes\":\t2062417920,\n\t\t\t\t\t\"bits_per_second\":\t16482465187.130621,\n\t\t\t\t\t\"retransmits\":\t688,\n\t\t\t\t\t\"snd_cwnd\":\t3132096,\n\t\t\t\t\t\"snd_wnd\":\t2939648,\n\t\t\t\t\t\"rtt\":\t292,\n\t\t\t\t\t\"rttvar\":\t22,\n\t\t\t\t\t\"pmtu\":\t8950,\n\t\t\t\t\t\"omitted\":\tfalse,\n\t\t\t\t\t\"sender\":\ttrue\n\t\t\t\t}", 5+2*s, i, i+1)
		}
		fmt.Fprintf(&b, `], "sum": {"start": %d, "end": %d, "seconds": 1, "bytes": 2062417920, "omitted": %t}}`, i, i+1, i == 0)
	}
	fmt.Fprintf(&b, `],
"end": {"sum_sent": {"seconds": 60, "bytes": %v, "bits_per_second": %v, %s "sender": true},
"sum_received": {"seconds": 60, "bytes": %v, "bits_per_second": %v, %s "sender": false},
"cpu_utilization_percent": {"host_total": 40.5, "remote_total": 50.5}}}
`, bw*60/8, bw, extra, bw*60/8, bw, extra)
	return b.String()
}

// recording is what statexec writes: the command runs from snapshot 3 to two
// before the last; every CPU is 0.1 s a second in system and 0.02 in softirq.
func recording(config string, round, snapshots, cpus int) string {
	const start = 1704067200000
	var b strings.Builder
	b.WriteString("# Collector: blackswift/statexec\n# Version: 0.8.0\n\n# HELP statexec_command_status Status of the command\n# TYPE statexec_command_status gauge\n")
	const common = `instance="idle",job="statexec",role="server"`
	for i := range snapshots {
		at := start + 1000*i
		status := 0
		switch {
		case i >= snapshots-2:
			status = 2
		case i >= 3:
			status = 1
		}
		fmt.Fprintf(&b, "statexec_command_status{%s,id=\"%s\",run=\"%d\"} %d %d\n", common, config, round, status, at)
		for cpu := range cpus {
			for mode, share := range map[string]float64{"user": 0, "nice": 0, "system": 0.1, "idle": 0.88, "iowait": 0, "irq": 0, "softirq": 0.02, "steal": 0, "guest": 0, "guestNice": 0} {
				fmt.Fprintf(&b, "statexec_cpu_seconds_total{%s,mode=\"%s\",cpu=\"cpu%d\",run=\"%d\",id=\"%s\"} %f %d\n", common, mode, cpu, round, config, 100+share*float64(i), at)
			}
		}
		for name, v := range map[string]float64{"memory_total": 8e9, "memory_used": 1.5e9, "memory_free": 6e9, "memory_available": 6.4e9, "memory_buffers": 1e8, "memory_cached": 4e8} {
			fmt.Fprintf(&b, "statexec_%s_bytes{%s,run=\"%d\",id=\"%s\"} %.0f %d\n", name, common, round, config, v, at)
		}
		for _, way := range []string{"sent", "received"} {
			fmt.Fprintf(&b, "statexec_network_%s_bytes_total{%s,interface=\"eth0\",run=\"%d\",id=\"%s\"} %d %d\n", way, common, round, config, 1000*i, at)
		}
		fmt.Fprintf(&b, "statexec_statexec_time_since_start_ms{%s,run=\"%d\",id=\"%s\"} %d %d\n", common, round, config, 1000*i, at)
	}
	fmt.Fprintf(&b, "statexec_summary_cpu_cores{%s,run=\"%d\",id=\"%s\"} %d %d\n", common, round, config, cpus, start+1000*snapshots)
	return b.String()
}
