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

	"github.com/cnibench/cnibench/internal/disk"
)

// kvmLimit is how long a guest under KVM may take to its init's first words;
// where KVM works it takes about one second.
const kvmLimit = 6 * time.Second

// chooseAccel is the accelerator that the configuration asks for, or what
// really boots a guest.
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

// insist is what helps where the probe of KVM is wrong.
const insist = "--accel kvm uses it all the same"

// kvmTrial is what a probe of KVM has found on this boot of the host.
type kvmTrial struct {
	BootID string    `json:"boot_id"`
	Kernel string    `json:"kernel"` // the guest's
	Works  bool      `json:"works"`
	Why    string    `json:"why,omitempty"`
	Until  time.Time `json:"until,omitzero"` // when to probe again; zero: not on this boot
}

// badMoment is how long a failure counts that a busy host may have caused.
const badMoment = time.Hour

// kvmVerdict probes KVM, or remembers what a probe has found since the host
// booted. A device that is there proves nothing: some hosts offer a KVM under
// which an ordinary kernel hangs.
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

// probe boots a guest to its init's first words. That it boots, and that QEMU
// refuses, stay so; that it hangs or ends may be the moment's fault. An error
// says nothing of KVM.
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
	case <-screen.seen(bootMark):
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
		v.Until = time.Now().Add(badMoment)
	}
	return nil
}

// verdictFile returns where the verdict for a guest of that kernel is kept.
func verdictFile(kernel string) string { return filepath.Join(CacheDir(), "kvm-"+kernel+".json") }

func recall(like kvmTrial) (kvmTrial, bool) {
	var v kvmTrial
	text, err := os.ReadFile(verdictFile(like.Kernel))
	if err != nil || json.Unmarshal(text, &v) != nil {
		return v, false
	}
	left := time.Until(v.Until) // more than badMoment: the clock was set back
	return v, v.BootID != "" && v.BootID == like.BootID && v.Kernel == like.Kernel && (v.Until.IsZero() || left > 0 && left <= badMoment)
}

// remember keeps the verdict where it can; else it is found again.
func remember(v kvmTrial) {
	text, err := json.Marshal(v)
	if err != nil || os.MkdirAll(CacheDir(), 0o755) != nil {
		return
	}
	_ = disk.ReplaceFile(verdictFile(v.Kernel), func(w io.Writer) error { _, err := w.Write(text); return err })
}
