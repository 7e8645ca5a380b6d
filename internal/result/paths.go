package result

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// DefaultUnderlay is the underlay that raw folders don't name: an L2 switch.
const DefaultUnderlay = "switch"

// rawPath is the folder of a sample's raw files, relative to the run
// directory: raw/CONTENDER/ROUND/STEP. Different keys have different folders.
func rawPath(k Key) string {
	contender := component(k.Contender)
	if k.Underlay != "" && k.Underlay != DefaultUnderlay {
		contender += "@" + component(k.Underlay)
	}
	return path.Join(rawFolder, contender, strconv.Itoa(k.Round), component(k.Step))
}

// maxComponent leaves room for a second component and a suffix in the 255
// bytes that file systems give a name.
const maxComponent = 100

// component turns any name into one path component that is neither "." nor "..".
// Different names give different components, and usual names stay as they are.
func component(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '-', c == '_', c == '+', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() == 0 {
		return "%"
	}
	if b.Len() > maxComponent {
		return fmt.Sprintf("%s%%%x", b.String()[:maxComponent-20], sha256.Sum256([]byte(name)))[:maxComponent]
	}
	return b.String()
}
