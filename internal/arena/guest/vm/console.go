package vm

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// console keeps the last lines of a guest's serial console. It is an
// io.Writer and may be used by several goroutines.
type console struct {
	mu    sync.Mutex
	tail  []byte
	watch map[string]chan struct{} // by text; closed when the text has been shown
	limit int
}

// consoleBytes is the size of what is kept: enough for a panic with its trace.
const consoleBytes = 16 << 10

func newConsole() *console { return &console{limit: consoleBytes, watch: map[string]chan struct{}{}} }

// Write implements io.Writer and never fails.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail = append(c.tail, p...)
	for text, seen := range c.watch {
		if bytes.Contains(c.tail, []byte(text)) {
			close(seen)
			delete(c.watch, text)
		}
	}
	if over := len(c.tail) - c.limit; over > 0 {
		c.tail = append(c.tail[:0], c.tail[over:]...)
	}
	return len(p), nil
}

// watchFor returns a channel that is closed when the console has shown the text.
func (c *console) watchFor(text string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := make(chan struct{})
	if bytes.Contains(c.tail, []byte(text)) {
		close(seen)
	} else {
		c.watch[text] = seen
	}
	return seen
}

// escapes matches control sequences of a terminal; the firmware writes some.
var escapes = regexp.MustCompile(`\x1b(\[[0-9;?]*[A-Za-z]|[c()][A-Z0-9]?)|[\x00-\x08\x0b-\x1f\x7f]`)

// lines returns the last n lines that are not empty, without control sequences.
func (c *console) lines(n int) []string {
	c.mu.Lock()
	text := string(c.tail)
	c.mu.Unlock()
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(escapes.ReplaceAllString(line, ""), " \n")
		if line != "" {
			lines = append(lines, strings.ToValidUTF8(line, "?"))
		}
	}
	return lines[max(0, len(lines)-n):]
}

// verdict returns how a kernel died, in the kernel's own words.
func (c *console) verdict() (reason, remedy string) {
	lines := c.lines(400)
	for _, d := range deaths {
		for _, line := range lines {
			if at := strings.Index(line, d.text); at >= 0 {
				return fmt.Sprintf("%s (%s)", d.reason, line[at:]), d.remedy
			}
		}
	}
	return "the guest ended by itself", ""
}

const moreMemory = "give it more with --memory"

// deaths lists the ways to die. A more specific one comes first, since a kernel that runs out
// of memory also panics.
var deaths = []struct{ text, reason, remedy string }{
	{"Out of memory", "the guest ran out of memory", moreMemory},
	{"out of memory", "the guest ran out of memory", moreMemory},
	{"deadlocked on memory", "the guest ran out of memory", moreMemory},
	{"Initramfs unpacking failed", "the guest's memory is too small for its first files", moreMemory},
	{"VFS: Unable to mount root fs", "the guest's kernel found no init", "is it a kernel with CONFIG_BLK_DEV_INITRD, and has it enough --memory?"},
	{"Kernel panic", "the guest's kernel panicked", ""},
}
