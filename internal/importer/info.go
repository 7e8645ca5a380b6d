package importer

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// This file reads what a configuration was: uname, interfaces, policy results.

// parseUname gives the kernel's release from `uname -a`.
func parseUname(r io.Reader) (release string, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxLine))
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 3 || !kernelRelease.MatchString(fields[2]) {
		return "", fmt.Errorf("%.80q is no output of uname -a", text)
	}
	return fields[2], nil
}

var kernelRelease = regexp.MustCompile(`^[0-9]+\.[0-9]+[0-9A-Za-z.+~_-]*$`)

// upstream is the version that a distribution's kernel release starts with:
// 5.15.0 of 5.15.0-92-generic. Security rebuilds of one kernel within a study
// are compared with each other, with a note.
func upstream(release string) string {
	version, _, _ := strings.Cut(release, "-")
	return version
}

var linkLine = regexp.MustCompile(`^[0-9]+: ([^ ]{1,64}): .*\bmtu ([0-9]{1,9})\b`)

// parseInterfaces gives the MTU of every interface but the loopback from `ip
// a`, by name without the peer (eth0@if11).
func parseInterfaces(r io.Reader) (map[string]int, error) {
	mtus := map[string]int{}
	loopback := false
	err := eachLine(r, func(_ int, line string) {
		m := linkLine.FindStringSubmatch(line)
		if m == nil {
			return
		}
		name, _, _ := strings.Cut(m[1], "@")
		if name == "lo" {
			loopback = true
			return
		}
		mtus[name], _ = strconv.Atoi(m[2])
	})
	if err == nil && len(mtus) == 0 && !loopback {
		err = errors.New("no interface in it; it is no output of ip a")
	}
	return mtus, err
}

// parseNetpol gives pass or fail of the policy test by direction, from a line
// of headings and a line of yes and no. Yes means that who was allowed got
// through and who was not did not.
func parseNetpol(r io.Reader) (map[string]string, error) {
	var rows [][]string
	if err := eachLine(r, func(_ int, line string) {
		if fields := strings.Fields(line); len(fields) > 0 && len(rows) < 3 {
			rows = append(rows, fields)
		}
	}); err != nil {
		return nil, err
	}
	if len(rows) != 2 || len(rows[0]) != 2 || len(rows[1]) != 2 ||
		!strings.EqualFold(rows[0][0], "ingress") || !strings.EqualFold(rows[0][1], "egress") {
		return nil, errors.New("not the two lines of a policy test: Ingress and Egress, yes or no")
	}
	verdicts := map[string]string{}
	for i, direction := range []string{"ingress", "egress"} {
		switch rows[1][i] {
		case "yes":
			verdicts[direction] = "pass"
		case "no":
			verdicts[direction] = "fail"
		default:
			return nil, fmt.Errorf("%s is %.40q instead of yes or no", direction, rows[1][i])
		}
	}
	return verdicts, nil
}
