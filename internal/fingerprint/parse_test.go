package fingerprint

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "",
		"quiet ro":                              "quiet ro",
		"root=UUID=12 ip=192.0.2.1:::h":         "root=… ip=…",
		"mitigations=off nohz_full=1-3 panic=1": "mitigations=off nohz_full=1-3 panic=1",
		"hugepages=8 default_hugepagesz=1G mem=4G": "hugepages=8 default_hugepagesz=1G mem=4G",
		`dyndbg="file a.c +p" idle=poll`:           "dyndbg=… idle=poll",
		`"quoted one" 192.0.2.1 x`:                 "x",
		"a -- --addr 192.0.2.1":                    "a",
		"serial=123456789012":                      "serial=…",
		"intel_pstate=disable intel=me":            "intel_pstate=disable intel=…",
	} {
		if got := commandLine(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestParseCPUInfo(t *testing.T) {
	got, err := parseCPUInfo(strings.NewReader("processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor\t: 1\nCPU part\t: 0xd05\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := cpuInfo{model: "Arm implementer 0x41 part 0xd0c", flags: []string{}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(cpuInfo{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseQdiscs(t *testing.T) {
	for in, want := range map[string][]string{
		"":                                  nil,
		"qdisc noqueue 0: root refcnt 2 \n": {"noqueue"},
		"qdisc ingress ffff: parent ffff:fff1 ----------------\nqdisc tbf 8001: root refcnt 5\n": {"tbf", "ingress"},
		"Cannot find device \"eth0\"\n": nil,
		"qdisc mq 0: root\nqdisc fq 0: parent :1 limit 1p\nqdisc fq 0: parent :2 limit 1p\nqdisc": {"mq", "fq"},
	} {
		got, err := parseQdiscs(strings.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", in, diff)
		}
	}
}

func TestParseMemTotal(t *testing.T) {
	for _, in := range []string{"", "MemFree: 1 kB\n", "MemTotal: x kB\n", "MemTotal: 1 MB\n", "MemTotal: 18446744073709551615 kB\n"} {
		if got, err := parseMemTotal(strings.NewReader(in)); err == nil {
			t.Errorf("%q: %v, want an error", in, got)
		}
	}
}

func TestPluginVersion(t *testing.T) {
	// The start of `printf x | sha256sum`.
	got, err := pluginVersion(strings.NewReader("x"))
	if err != nil || got != "sha256:2d711642b726b044" {
		t.Errorf("got %q, %v", got, err)
	}
}

// FuzzParsers feeds every parser the same text: none may panic or invent.
func FuzzParsers(f *testing.F) {
	for _, name := range []string{"vm/proc/cpuinfo", "vm/proc/meminfo", "vm/proc/config.gz", "numa/boot/config-6.1.0-32-amd64", "numa/proc/cpuinfo"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("qdisc mq 0: root\nqdisc fq 0: parent :1\n0-3,8 [x]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if info, err := parseCPUInfo(bytes.NewReader(text)); err == nil && (info.mhz < 0 || info.mhz != info.mhz) {
			t.Errorf("frequency %v", info.mhz)
		}
		if total, err := parseMemTotal(bytes.NewReader(text)); err == nil && total < 0 {
			t.Errorf("memory %v", total)
		}
		for _, parser := range []bool{true, false} {
			var options map[string]string
			if parser {
				options, _ = parseConfig(bytes.NewReader(text))
			} else {
				options, _ = withGunzip(parseConfig)(bytes.NewReader(text))
			}
			for option := range options {
				if !configOptions.MatchString(option) {
					t.Errorf("option %q", option)
				}
			}
		}
		if kinds, err := parseQdiscs(bytes.NewReader(text)); err == nil {
			for _, k := range kinds {
				if k == "" {
					t.Error("empty qdisc")
				}
			}
		}
		parseChoice(string(text))
	})
}

// FuzzCommandLine checks that an unknown parameter never shows its value.
func FuzzCommandLine(f *testing.F) {
	f.Add("root=/dev/sda1 quiet -- x")
	f.Add(`ds="a b" ip=192.0.2.1`)
	shown := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*(=.*)?$`)
	f.Fuzz(func(t *testing.T, line string) {
		for _, word := range strings.Split(commandLine(line), " ") {
			name, value, has := strings.Cut(word, "=")
			if word == "" || isTelling(name) || strings.Contains(word, `"`) {
				continue
			}
			if !shown.MatchString(word) || has && value != "…" && !plainValue.MatchString(value) {
				t.Errorf("%q shows %q", line, word)
			}
		}
	})
}
