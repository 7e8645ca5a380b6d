package vm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/atomicfile"
)

// kvmLimit is how long a guest under KVM may take until its init writes its first line. It
// takes about one second if KVM works.
const kvmLimit = 6 * time.Second

// chooseAccel returns the accelerator that the configuration asks for; for auto, KVM if it
// really boots a guest, else TCG.
func chooseAccel(ctx context.Context, c *Config) (string, error) {
	if c.Accel == AccelKVM || c.Accel == AccelTCG {
		return c.Accel, nil
	}
	v, err := kvmVerdict(ctx, c)
	if err != nil {
		return "", err
	}
	if v.Works {
		return AccelKVM, nil
	}
	c.Log.Debug("the guest's CPU is emulated", "why", v.Why, "next", insist)
	return AccelTCG, nil
}

// insist is the remedy if the probe of KVM is wrong.
const insist = "--accel kvm uses it all the same"

// kvmTrial is the result of probing KVM. It holds for this boot of the host.
type kvmTrial struct {
	BootID string    `json:"boot_id"`
	Kernel string    `json:"kernel"` // release of the guest's kernel
	Works  bool      `json:"works"`
	Why    string    `json:"why,omitempty"`
	Until  time.Time `json:"until,omitzero"` // when to probe again; zero: not before the next boot
}

// retryAfter is how long a failure counts that a busy host may have caused.
const retryAfter = time.Hour

// kvmVerdict probes KVM, or returns what a probe has found since the host booted. The device
// alone proves nothing: under the KVM of some hosts an ordinary kernel hangs.
func kvmVerdict(ctx context.Context, c *Config) (kvmTrial, error) {
	v := kvmTrial{Kernel: c.Kernel.Release}
	if f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err != nil {
		v.Why = err.Error()
		return v, nil
	} else if err := f.Close(); err != nil {
		return v, err
	}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		v.BootID = strings.TrimSpace(string(id))
	}
	memory, known := recall(v)
	if known {
		return memory, nil
	}
	c.Log.Info("trying whether KVM boots a guest", "at most", kvmLimit)
	if err := v.probe(ctx, c); err != nil {
		return v, err
	}
	if !v.Works {
		c.Log.Info("KVM boots no guest here: its CPU is emulated, many times slower", "why", v.Why, "next", insist)
	}
	remember(v)
	return v, nil
}

// probe boots a guest until its init writes its first line. Success and refusal by QEMU are
// permanent and cached. A hang or early exit may be temporary. An error means that KVM was not
// tested.
func (v *kvmTrial) probe(ctx context.Context, c *Config) error {
	p := &process{}
	defer p.release()
	if err := p.addInitramfs(c.Init, c.Kernel.Modules, &order{}); err != nil {
		return err
	}
	m := machine{accel: AccelKVM, cpus: 1, memory: 512 << 20, image: c.Kernel.Image, initramfs: p.initramfs, bare: true}
	end, err := p.addSocket(&m.console)
	if err != nil {
		return err
	}
	defer end.Close()
	if err := p.start(m); err != nil {
		return err
	}
	defer p.kill()
	screen := newConsole()
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := end.Read(buf)
			_, _ = screen.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	refused := false
	select {
	case <-screen.watchFor(bootMark):
		v.Works = true
	case <-p.ended:
		v.Why = p.words()
		refused = v.Why != "" && !lacksMemory(v.Why)
		v.Why = cmp.Or(v.Why, "the guest ended while it booted")
	case <-time.After(kvmLimit):
		v.Why = fmt.Sprintf("a guest hung for %v", kvmLimit)
	case <-ctx.Done():
		return ctx.Err()
	}
	if !v.Works && !refused {
		v.Until = time.Now().Add(retryAfter)
	}
	return nil
}

// verdictFile returns the file that holds the verdict for a guest of that kernel.
func verdictFile(kernel string) string { return filepath.Join(CacheDir(), "kvm-"+kernel+".json") }

func recall(like kvmTrial) (kvmTrial, bool) {
	var v kvmTrial
	text, err := os.ReadFile(verdictFile(like.Kernel))
	if err != nil || json.Unmarshal(text, &v) != nil {
		return v, false
	}
	left := time.Until(v.Until) // if more than retryAfter, the clock was set back
	return v, v.BootID != "" && v.BootID == like.BootID && v.Kernel == like.Kernel && (v.Until.IsZero() || left > 0 && left <= retryAfter)
}

// remember writes the verdict to the cache. If that fails, the next guest probes again.
func remember(v kvmTrial) {
	text, err := json.Marshal(v)
	if err != nil || os.MkdirAll(CacheDir(), 0o755) != nil {
		return
	}
	_ = atomicfile.ReplaceFile(verdictFile(v.Kernel), func(w io.Writer) error { _, err := w.Write(text); return err })
}
