package report

import "regexp"

var policyHash = regexp.MustCompile(`sha256-[A-Za-z0-9&#;+/]+=`)
