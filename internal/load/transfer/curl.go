package transfer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Curl is the client of HTTP, HTTPS and FTP. A transfer's seconds are curl's
// time_total: from its start on the URL, before it connects, to the last byte, without
// the start and the end of the program. The first byte is curl's time_starttransfer: of
// the response's header with HTTP, of the file with FTP.
type Curl struct {
	Args      []string // options and the URL
	FileBytes int64
}

// curlFormat is what curl is told to print after a transfer; parseCurl reads it.
const curlFormat = `%{size_download} %{time_starttransfer} %{time_total}\n`

// Fetch implements Client.
func (c Curl) Fetch(ctx context.Context, to string) (Transfer, error) {
	if to == "" {
		to = "/dev/null"
	}
	// -q: no .curlrc is read. --fail: an error page is an error.
	argv := append([]string{"curl", "-q", "--silent", "--show-error", "--fail", "--noproxy", "*",
		"--output", to, "--write-out", curlFormat}, c.Args...)
	stdout, _, _, err := run(ctx, argv)
	if err != nil {
		return Transfer{}, err
	}
	t, size, err := parseCurl(bytes.NewReader(stdout))
	if err == nil && size != c.FileBytes {
		err = wrongSize(size, c.FileBytes)
	}
	return t, err
}

// parseCurl reads what curl prints for curlFormat. Some locales write times
// with a comma.
func parseCurl(r io.Reader) (t Transfer, size int64, err error) {
	line, err := bufio.NewReader(io.LimitReader(r, 4<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return t, 0, err
	}
	f := strings.Fields(line)
	if len(f) != 3 {
		return t, 0, fmt.Errorf("curl printed %.80q instead of its figures", line)
	}
	if size, err = strconv.ParseInt(f[0], 10, 64); err != nil || size < 0 {
		return t, 0, fmt.Errorf("curl printed %.80q as the size", f[0])
	}
	for i, into := range []*float64{&t.FirstByte, &t.Seconds} {
		*into, err = strconv.ParseFloat(strings.Replace(f[i+1], ",", ".", 1), 64)
		if err != nil || !(*into > 0 && *into < maxSeconds) {
			return t, 0, fmt.Errorf("curl printed %.80q as a time", f[i+1])
		}
	}
	if t.FirstByte > t.Seconds {
		return t, 0, fmt.Errorf("curl says that the first byte came after %v s of %v s", t.FirstByte, t.Seconds)
	}
	return t, size, nil
}

// maxSeconds is longer than any transfer.
const maxSeconds = 1e6
