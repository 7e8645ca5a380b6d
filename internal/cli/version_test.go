package cli

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

func TestToolOf(t *testing.T) {
	built := func(version, revision string) *debug.BuildInfo {
		info := &debug.BuildInfo{Main: debug.Module{Path: "github.com/cnibench/cnibench", Version: version}}
		if revision != "" {
			info.Settings = []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: revision}}
		}
		return info
	}
	for name, test := range map[string]struct {
		info            *debug.BuildInfo
		version, commit string
		want            result.Tool
	}{
		"a release":           {built("(devel)", ""), "v1.2.3", "abc", result.Tool{Version: "v1.2.3", Commit: "abc"}},
		"go install of a tag": {built("v1.2.3", ""), "", "", result.Tool{Version: "v1.2.3"}},
		"go build":            {built("v1.2.4-0.20260102030405-abcdef012345+dirty", "abcdef"), "", "", result.Tool{Version: "v1.2.4-0.20260102030405-abcdef012345+dirty", Commit: "abcdef"}},
		"go build of no git":  {built("(devel)", ""), "", "", result.Tool{Version: "dev"}},
		"nothing is known":    {nil, "", "", result.Tool{Version: "dev"}},
	} {
		test.want.Name = "cnibench"
		if diff := cmp.Diff(test.want, toolOf(test.info, test.version, test.commit)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
