package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/text/console"
	"github.com/cnibench/cnibench/internal/tune"
)

// trustedFile, in the user's state folder, has digests of the images and CNI
// configurations that this user's runs have executed. A run directory names such, and
// somebody else may have made it.
const trustedFile = "executed.json"

// maxTrusted is how many digests are kept, the newest.
const maxTrusted = 1000

// listExecuted returns what a run with these settings executes, by flag: the image of a
// cluster's pods and the text of a CNI configuration.
func listExecuted(settings map[string]string) map[string]string {
	all := map[string]string{}
	for flag, key := range map[string]string{"image": "image", "cni-conf": cniTextKey} {
		if value := settings[key]; value != "" {
			all[flag] = value
		}
	}
	return all
}

func digestTrusted(flag, value string) string {
	sum := sha256.Sum256([]byte(flag + "\x00" + value))
	return hex.EncodeToString(sum[:])
}

// readTrusted reads the digests; none if the file is missing or damaged.
func readTrusted(dir string) []string {
	var known []string
	data, err := os.ReadFile(filepath.Join(dir, trustedFile))
	if err != nil || json.Unmarshal(data, &known) != nil {
		return nil
	}
	return known
}

// remember notes in dir what a run with these settings executes.
func remember(dir string, settings map[string]string) error {
	known := readTrusted(dir)
	before := len(known)
	for flag, value := range listExecuted(settings) {
		if digest := digestTrusted(flag, value); !slices.Contains(known, digest) {
			known = append(known, digest)
		}
	}
	if len(known) == before {
		return nil
	}
	data, err := json.Marshal(known[max(0, len(known)-maxTrusted):])
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return atomicfile.ReplaceFile(filepath.Join(dir, trustedFile), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// trusts returns an error if the run directory names an image or a CNI configuration
// that the user neither gives again nor has run before, by the digests in dir.
func (f *Request) trusts(dir string, settings map[string]string) error {
	known := readTrusted(dir)
	for flag, value := range listExecuted(settings) {
		if flag == "image" && f.Given[flag] && f.Cluster.Image != value {
			return exit.Usage("--image %s: the run was begun with %s, and a resumed run keeps its plan", f.Cluster.Image, value)
		}
		if f.Given[flag] || slices.Contains(known, digestTrusted(flag, value)) {
			continue // the text of --cni-conf is compared when it is read
		}
		if flag == "image" {
			return exit.Usage("%s names the image %s, which no run of yours has used: if you trust it, give it again with --image %s", f.Resume, value, value)
		}
		return exit.Usage("%s has a CNI configuration that no run of yours has used: look at it in run.json, and if you trust it, give its file with --cni-conf FILE", f.Resume)
	}
	return nil
}

// checkTrust refuses a resumed run that names what the user does not trust, and notes
// what the run executes. If the note can't be written, the run goes on, and its
// resumption asks for the image or configuration again.
func (j *Job) checkTrust() error {
	dir, err := tune.StateDir()
	if err != nil {
		return err
	}
	if j.Resume {
		if err := j.request.trusts(dir, j.Record.Plan.Settings); err != nil {
			return err
		}
	}
	if err := remember(dir, j.Record.Plan.Settings); err != nil {
		console.Logger(os.Stderr).Warn("a resumption will ask for the image or the CNI configuration again", "why", err)
	}
	return nil
}
