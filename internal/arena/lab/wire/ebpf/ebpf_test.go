//go:build linux

package ebpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// What is written into maps has the size that the programs read.
func TestEBPFLayouts(t *testing.T) {
	for name, c := range map[string]struct {
		object []byte
		key    any
		value  any
	}{
		"endpoints":  {ciliumObject, [4]byte{}, ciliumEndpoint{}},
		"ipcache":    {ciliumObject, ciliumPrefix{}, ciliumRemote{}},
		"policy":     {ciliumObject, ciliumPolicyKey{}, ciliumPolicy{}},
		"services":   {ciliumObject, serviceKey{}, serviceEntry{}},
		"reverse":    {sockObject, uint32(0), serviceAddress{}},
		"namespaces": {sockObject, uint64(0), uint32(0)},
		"routes":     {calicoObject, ciliumPrefix{}, calicoRoute{}},
		"frontends":  {calicoObject, calicoFrontendKey{}, calicoFrontend{}},
		"backends":   {calicoObject, calicoBackendKey{}, serviceAddress{}},
	} {
		t.Run(name, func(t *testing.T) {
			spec, err := objectSpec(c.object)
			if err != nil {
				t.Fatal(err)
			}
			m := spec.Maps[name]
			if key, value := binary.Size(c.key), binary.Size(c.value); int(m.KeySize) != key || int(m.ValueSize) != value {
				t.Errorf("programs read %d and %d bytes, written are %d and %d", m.KeySize, m.ValueSize, key, value)
			}
		})
	}
}

// A program that the verifier refuses is named with the kernel and the
// verifier's words, and nothing of its object stays loaded.
func TestEBPFRefused(t *testing.T) {
	object, err := os.ReadFile("bpf/testdata/refused.o")
	if err != nil {
		t.Fatal(err)
	}
	_, err = loadEBPF(object, []string{"harmless", "reads_too_far"}, nil, nil)
	if errors.Is(err, unix.EPERM) {
		t.Skip("this user may load no eBPF programs; run as root: go test ./internal/arena/lab/wire -run TestEBPFRefused")
	}
	var refused *RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("error %v, want a RefusedError", err)
	}
	if refused.Program != "reads_too_far" || refused.Kernel == "" || refused.Remedy() == "" {
		t.Errorf("program %q, kernel %q, remedy %q", refused.Program, refused.Kernel, refused.Remedy())
	}
	if !strings.Contains(refused.Log, "invalid access to packet") {
		t.Errorf("the verifier's words: %s", refused.Log)
	}
}

func TestLoadEBPF(t *testing.T) {
	if _, err := loadEBPF([]byte("no object"), nil, nil, nil); err == nil {
		t.Error("loaded what is no object")
	}
	if _, err := loadEBPF(ciliumObject, nil, map[string]any{"no_such_constant": true}, nil); err == nil || !strings.Contains(err.Error(), "no_such_constant") {
		t.Errorf("an unknown constant: %v", err)
	}
}

func TestCiliumSettings(t *testing.T) {
	for name, c := range map[string]struct {
		params wire.Params
		want   string
	}{
		"aggregation": {wire.Params{"monitor-aggregation": "much"}, "none, low, medium or maximum"},
		"hubble":      {wire.Params{"hubble": "moon"}, "off, agent or relay"},
	} {
		t.Run(name, func(t *testing.T) {
			err := ciliumSetup(t.Context(), &wire.Fabric{}, c.params)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
	for _, piece := range []wire.Transport{CiliumVXLAN, CiliumRoutes} {
		if err := piece.Setup(t.Context(), &wire.Fabric{}, nil); err == nil || !strings.Contains(err.Error(), "veth-ebpf") {
			t.Errorf("%s without its attachment: %v", piece.Name, err)
		}
	}
	for _, piece := range []wire.Service{CiliumService, CalicoService} {
		if _, err := piece.Setup(t.Context(), &wire.Fabric{}, nil); err == nil {
			t.Errorf("%s without its attachment came up", piece.Name)
		}
	}
}

// aFlow returns an event with a TCP packet from 10.244.0.2:40000 to 10.244.1.2:80.
func aFlow(t testing.TB) []byte {
	t.Helper()
	packet := make([]byte, 14+20+20)
	ip := packet[14:]
	ip[0], ip[9] = 0x45, unix.IPPROTO_TCP
	copy(ip[12:], []byte{10, 244, 0, 2, 10, 244, 1, 2})
	binary.BigEndian.PutUint16(ip[20:], 40000)
	binary.BigEndian.PutUint16(ip[22:], 80)
	ip[33] = 0x12 // SYN, ACK
	var b bytes.Buffer
	e := flowEvent{Type: 4, Point: 4, Length: 66, Captured: uint16(len(packet)), From: 257, To: 258, Reason: 1}
	if err := binary.Write(&b, binary.NativeEndian, e); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), packet...)
}

func TestParseFlow(t *testing.T) {
	got, err := parseFlow(bytes.NewReader(aFlow(t)))
	if err != nil {
		t.Fatal(err)
	}
	if got.Time.IsZero() {
		t.Error("no time")
	}
	want := hubbleFlow{
		Time: got.Time, Point: 4, Reason: 1, Length: 66, From: 257, To: 258, Protocol: unix.IPPROTO_TCP, TCPFlags: 0x12,
		Source: netip.MustParseAddrPort("10.244.0.2:40000"), Destination: netip.MustParseAddrPort("10.244.1.2:80"),
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, cut := range []int{0, 20, 48, 60} {
		if _, err := parseFlow(bytes.NewReader(aFlow(t)[:cut])); err == nil {
			t.Errorf("%d bytes were an event", cut)
		}
	}
}

func FuzzParseFlow(f *testing.F) {
	f.Add(aFlow(f))
	f.Fuzz(func(t *testing.T, event []byte) {
		flow, err := parseFlow(bytes.NewReader(event))
		if err == nil && !flow.Source.Addr().Is4() {
			t.Errorf("%+v has no source", flow)
		}
	})
}

// The objects are what the sources give, where the same clang is at hand.
func TestEBPFObjectsAreCurrent(t *testing.T) {
	version, err := exec.CommandContext(t.Context(), "clang", "--version").Output()
	if err != nil || !bytes.Contains(version, []byte("version "+objectsClang)) {
		t.Skipf("needs clang %s: apt-get install clang llvm libbpf-dev; then go test ./internal/arena/lab/wire -run TestEBPFObjectsAreCurrent", objectsClang)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("bpf")); err != nil {
		t.Fatal(err)
	}
	objects, err := filepath.Glob("bpf/*.o")
	if err != nil || len(objects) == 0 {
		t.Fatalf("objects %v, error %v", objects, err)
	}
	for _, object := range objects {
		source := strings.TrimSuffix(filepath.Base(object), ".o") + ".c"
		if out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "generate.sh"), source).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", source, err, out)
		}
		compare(t, object, filepath.Join(dir, filepath.Base(object)))
	}
}

// objectsClang built the committed objects: Debian 12's.
const objectsClang = "14.0"

func compare(t *testing.T, committed, built string) {
	t.Helper()
	a, err := ebpf.LoadCollectionSpec(committed)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ebpf.LoadCollectionSpec(built)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range b.Programs {
		old := a.Programs[name]
		if old == nil || fmt.Sprint(old.Instructions) != fmt.Sprint(p.Instructions) {
			t.Errorf("%s: %s is not what its source gives; run make generate", committed, name)
		}
	}
}
