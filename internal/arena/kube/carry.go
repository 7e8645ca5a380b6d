package kube

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/podprogram"
)

// This file carries this program into pods whose image lacks it: through exec, into the
// pods' folder in memory, by nothing but a shell and a few small programs. Next: image.go.

const (
	// maxCarries is how many pods get the program at the same time: the way to the API
	// server may be slow.
	maxCarries = 4
	// carryStall is how long a stream may take no bytes before it counts as broken.
	carryStall = 20 * time.Second
	// carryTries is how often a stream may break without having carried a byte.
	carryTries = 5
	carryPause = time.Second
	// shellTimeout limits a command of the shell that carries nothing.
	shellTimeout = 30 * time.Second
)

// cargo is what pods of a cluster get: their image, and this program where the image lacks
// it.
type cargo struct {
	settle sync.Mutex    // held while an image is chosen
	slots  chan struct{} // holds a value for each pod that just gets the program
	bytes  atomic.Int64  // of this program, carried to all pods

	mu            sync.Mutex
	image, policy string // where the user gave none
}

func newCargo() *cargo { return &cargo{slots: make(chan struct{}, maxCarries)} }

// boot is the first process of a pod. $1 is this program in the image, $2 the folder in
// memory, $3 the seconds that the pod waits for a sign of its run, $4 what it says then. Without the program
// in the image it waits until finish has written the file go.
const boot = `[ -x "$1" ] && exec "$1" agent idle
cd "$2" || exit 1
trap 'exit 0' TERM
: >waiting
waited=0
until [ -s go ]; do
	for f in part.* renewed; do
		if [ "$f" -nt waiting ]; then : >waiting; waited=0; fi
	done
	waited=$((waited + 1))
	if [ $waited -ge "$3" ]; then
		echo "$4 for $3 s"
		exit 1
	fi
	sleep 1 || exit 1
done
read -r program <go
exec "$program" agent idle
`

// look says what there is in a pod, a word and its value on each line.
const look = `[ -x "$1" ] && { echo own; exit; }
for program in cat chmod head mv rm sleep uname wc; do
	command -v $program >/dev/null || echo "lacks $program"
done
echo "machine $(uname -m)"
if command -v gzip >/dev/null; then echo "unpack gzip"; elif command -v gunzip >/dev/null; then echo "unpack gunzip"; fi
sh=/bin/sh
[ -x $sh ] || sh=$(command -v sh)
for dir in "$2" /tmp /var/tmp; do
	try=$dir/.cnibench-try
	if { printf '#!%s\nexit 0\n' "$sh" >"$try" && chmod 755 "$try" && "$try"; } 2>/dev/null; then
		rm -f "$try"
		echo "dir $dir"
		exit
	fi
	rm -f "$try" 2>/dev/null
done
`

// receive appends $2 bytes of standard input to $1. Busybox's head copies from a pipe to a
// file with sendfile, and ends early; between pipes it does not.
const receive = `head -c "$2" | cat >>"$1"`

// goOn gives what has come so far another name, so that a stream that broke, and may still
// write, writes to nothing that counts. It prints how many bytes that are.
const goOn = `if [ -f "$1" ]; then cat <"$1" >"$2" && rm -f "$1"; else : >>"$2"; fi && wc -c <"$2"`

// finish makes the program of $1 in the folder $2, by the unpacker $3.
const finish = `if ! [ -f "$1" ]; then [ -x "$2/cnibench" ]; exit; fi # an earlier try, whose answer was lost
case $3 in
gzip) gzip -dc <"$1" ;;
gunzip) gunzip -c <"$1" ;;
*) cat <"$1" ;;
esac >"$2/.cnibench" && chmod 755 "$2/.cnibench" && mv "$2/.cnibench" "$2/cnibench" && rm -f "$1"`

// begin lets boot start the program.
const begin = `rm -f "$2"/part.*; echo "$1" >"$2/go"`

// renewing is `agent renew` for a pod that has no program yet.
const renewing = `while read -r sign; do echo "$sign" >"$1"; done`

// seen is what look has found.
type seen struct {
	own     bool // the image has this program
	machine string
	unpack  string // "gzip", "gunzip", or "" for none
	dir     string // where programs can be started; "" for nowhere
	lacks   []string
}

func readSeen(text string) seen {
	var s seen
	for line := range strings.Lines(text) {
		word, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "own":
			s.own = true
		case "lacks":
			s.lacks = append(s.lacks, value)
		case "machine":
			s.machine = value
		case "unpack":
			s.unpack = value
		case "dir":
			s.dir = value
		}
	}
	return s
}

// architectures are Go's names of what `uname -m` prints.
var architectures = map[string]string{
	"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x", "riscv64": "riscv64", "i686": "386", "armv7l": "arm",
}

// shell runs a script of the pod's shell, and returns what it prints.
func (e *endpoint) shell(ctx context.Context, script string, stdin io.Reader, args ...string) (string, error) {
	var out, said bytes.Buffer
	argv := append([]string{"sh", "-c", script, "sh"}, args...)
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	err := e.cl.Exec(e.namespace, e.pod, container, argv)(ctx, stdin, &out, &said)
	if text := strings.TrimSpace(said.String()); err != nil && text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return out.String(), err
}

// ask runs a script that carries nothing, again where the stream breaks.
func (e *endpoint) ask(ctx context.Context, what, script string, args ...string) (text string, err error) {
	err = Retry(ctx, apiPatience, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, shellTimeout)
		defer cancel()
		if text, err = e.shell(ctx, script, nil, args...); err != nil {
			err = fmt.Errorf("pod %s on node %s: %s: %w", e.pod, e.node, what, err)
		}
		return err
	}, func(err error) bool {
		var ended interface{ Exited() bool } // with an exit code of its own
		return !errors.As(err, &ended) && e.checkPod(ctx) == nil
	})
	if err != nil {
		err = cmp.Or(e.checkPod(ctx), err)
	}
	return text, err
}

// equip finds this program in the pod, or carries it there, and sets e.program. held
// notifies the pod from then on. The error is an *arena.Unsupported if the image can't run
// the program.
func (e *endpoint) equip(ctx context.Context, held *lease) error {
	found, p, err := e.inspect(ctx)
	if err != nil {
		return err
	}
	if found.own {
		e.program = e.cl.program
		held.notify(e)
		return nil
	}
	e.carried = true
	held.notify(e) // the pod waits for its turn
	select {
	case e.cl.cargo.slots <- struct{}{}:
		defer func() { <-e.cl.cargo.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := e.carry(ctx, p, found); err != nil {
		return fmt.Errorf("carry the program to pod %s on node %s: %w", e.pod, e.node, err)
	}
	return nil
}

// inspect returns what the pod has, and the program for its architecture; nil if its image
// has this program. The error is an *arena.Unsupported if the program can't run there.
func (e *endpoint) inspect(ctx context.Context) (found seen, p *podprogram.Program, err error) {
	text, err := e.ask(ctx, "what its image has", look, e.cl.program, e.cl.dir)
	if err != nil {
		return found, nil, err
	}
	if found = readSeen(text); found.own {
		return found, nil, nil
	}
	p, err = podprogram.For(cmp.Or(architectures[found.machine], found.machine))
	var missing *podprogram.MissingError
	var reason, remedy string
	switch {
	case len(found.lacks) > 0:
		reason, remedy = "it lacks "+strings.Join(found.lacks, ", "), "give an image with a shell and its usual programs, such as busybox, with --image"
	case found.dir == "":
		reason, remedy = "no folder that the pod may write to lets programs start (noexec, or a read-only root)", "give the image of `make image`, which has this program, with --image"
	case errors.As(err, &missing):
		reason, remedy = missing.Error(), missing.Remedy()
	default:
		return found, p, err
	}
	image, _ := e.cl.image()
	return found, nil, &arena.Unsupported{Reason: fmt.Sprintf("pod %s on node %s, image %s: %s", e.pod, e.node, image, reason), Remedy: remedy}
}

// carry brings the program into the pod, starts it and compares its digest.
func (e *endpoint) carry(ctx context.Context, p *podprogram.Program, found seen) error {
	text, size := io.ReaderAt(bytes.NewReader(p.Gzip)), int64(len(p.Gzip))
	if found.unpack == "" {
		r, err := p.Open()
		if err != nil {
			return err
		}
		raw, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		text, size = bytes.NewReader(raw), int64(len(raw))
	}
	var sent int64
	var last error
	for try := range 2 { // the second time, what came was damaged
		part := fmt.Sprintf("%s/part.%d.", e.cl.dir, try)
		name, n, err := e.send(ctx, text, size, part)
		sent += n
		if err != nil {
			return err
		}
		_, last = e.ask(ctx, "unpack the program", finish, name, found.dir, found.unpack)
		if last == nil {
			last = e.verify(ctx, found.dir+"/cnibench", p)
		}
		if last == nil {
			e.program = found.dir + "/cnibench"
			if _, err := e.ask(ctx, "start the program", begin, e.program, e.cl.dir); err != nil {
				return err
			}
			e.carriedBytes = sent
			e.cl.cargo.bytes.Add(sent)
			return nil
		}
		if ctx.Err() != nil || e.checkPod(ctx) != nil {
			break
		}
	}
	return last
}

// verify lets the program say what it is.
func (e *endpoint) verify(ctx context.Context, program string, p *podprogram.Program) error {
	text, err := e.ask(ctx, "start the program", `"$1" agent have`, program)
	if err != nil {
		return err
	}
	var have agent.Have
	if err := json.Unmarshal([]byte(text), &have); err != nil {
		return fmt.Errorf("what the program says of itself: %w", err)
	}
	if have.SHA256 != p.SHA256 {
		return fmt.Errorf("the program came damaged: its digest is %s, not %s", have.SHA256, p.SHA256)
	}
	return nil
}

// send appends the bytes to a file of the pod whose name begins with part, and goes on
// where a stream broke. It returns the file's name and how many bytes it sent.
func (e *endpoint) send(ctx context.Context, text io.ReaderAt, size int64, part string) (name string, sent int64, err error) {
	var done int64
	name = part + "0"
	failed := 0
	for stream := 1; ; stream++ {
		n, streamErr := e.sendRest(ctx, io.NewSectionReader(text, done, size-done), name, size-done)
		sent += n
		if streamErr != nil && ctx.Err() != nil {
			return name, sent, context.Cause(ctx)
		}
		next := part + strconv.Itoa(stream)
		came, err := e.ask(ctx, "see what came", goOn, name, next)
		if err != nil {
			return name, sent, err
		}
		name = next
		before := done
		if done, err = strconv.ParseInt(strings.TrimSpace(came), 10, 64); err != nil || done > size {
			return name, sent, fmt.Errorf("the pod has %q bytes of %d", strings.TrimSpace(came), size)
		}
		if done == size {
			return name, sent, nil
		}
		if failed++; done > before {
			failed = 0
		}
		if failed == carryTries {
			return name, sent, fmt.Errorf("the stream broke %d times at byte %d of %d: %w", carryTries, done, size, streamErr)
		}
		e.cl.Options.log("the stream to pod %s on node %s broke at byte %d of %d; going on there: %v", e.pod, e.node, done, size, streamErr)
		select {
		case <-time.After(carryPause):
		case <-ctx.Done():
			return name, sent, context.Cause(ctx)
		}
	}
}

// sendRest sends what r has, in one stream, until that breaks or takes no bytes for
// carryStall. It returns how many bytes were taken.
func (e *endpoint) sendRest(ctx context.Context, r io.Reader, name string, size int64) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	counted := &counter{ctx: ctx, r: r}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		tick := time.NewTicker(carryStall)
		defer tick.Stop()
		for last := int64(-1); ; {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			now := counted.n.Load()
			if now == last {
				cancel(fmt.Errorf("no byte in %v", carryStall))
				return
			}
			last = now
		}
	}()
	_, err := e.shell(ctx, receive, counted, name, strconv.FormatInt(size, 10))
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	return counted.n.Load(), err
}

// counter counts what is read. Its end comes only with that of ctx: whoever closes a stream
// to a pod loses bytes that are still on their way.
type counter struct {
	ctx context.Context
	r   io.Reader
	n   atomic.Int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	if n == 0 && errors.Is(err, io.EOF) {
		<-c.ctx.Done()
	}
	return n, err
}
