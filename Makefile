# cnibench: `make help` lists the targets.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export CGO_ENABLED := 0

version := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
commit  := $(shell git rev-parse HEAD 2>/dev/null)
cli     := github.com/cnibench/cnibench/internal/cli
build   := -trimpath -buildvcs=false -ldflags "-s -w -X $(cli).version=$(version) -X $(cli).commit=$(commit)"

# What the demo compares: what every recent kernel runs, in some five minutes.
# Fewer than seven rounds tell no nine contenders apart.
demo    := macvlan,calico-noencap,flannel-host-gw,flannel-vxlan,canal,cilium,cilium-native,calico-ebpf

# Tests of these measure or wait: they run one package at a time, without the
# race detector. All others run with it where there is a C compiler.
timed   := load|serve|workload|bench|agent|arena|ns|wire|vm|check|tune|cli
# Tests of these run as an ordinary user, too.
user    := ./internal/result ./internal/arena/lab
fuzztime ?= 10s

# Of the target image.
name   ?= cnibench:dev
arch   ?= $(shell go env GOHOSTARCH)
iperf3 ?=
push   ?=

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: setup-demo build ## compare pod networks on this machine: a table and an HTML report in a fresh folder
	@bin/cnibench run --suite quick --arena lab --contenders $(demo) --rounds 7 --out cnibench-run-$$(date +%Y%m%d-%H%M%S)

.PHONY: setup
setup: setup-all ## installs what every contender and suite of the lab and the microVM needs

.PHONY: build
build: ## bin/cnibench, static
	go build $(build) -o bin/cnibench .

.PHONY: image
image: ## bin/cnibench-image.tar, or cnibench:dev in docker, podman or buildah: the image for pods of a cluster (name=, arch=, iperf3=, push=1)
	@for a in $(arch); do GOOS=linux GOARCH=$$a go build $(build) -o bin/image/$$a/usr/local/bin/cnibench . || exit 1; done
	@IMAGE=$(name) IPERF3=$(iperf3) PUSH=$(push) scripts/image $(arch)

.PHONY: flanneld
flanneld: ## bin/flanneld, flannel's own daemon from its published module: for contender flannel-udp and the proof of the others (needs a C compiler; some minutes)
	cd tools/flanneld && CGO_ENABLED=1 go build -trimpath -ldflags "-s -w" -o ../../bin/flanneld github.com/flannel-io/flannel

.PHONY: test
test: setup-test flanneld ## every test that this machine can run; fails if one leaves something behind
	scripts/leak-check $(MAKE) --no-print-directory test-inside
	$(MAKE) --no-print-directory test-kube

.PHONY: testbed-up
testbed-up: setup-test bin/testbed ## a real Kubernetes cluster on this machine, for tests (docs/testbed.md); flags= has more
	@bin/testbed up $(flags)

.PHONY: testbed-down
testbed-down: bin/testbed ## end that cluster and remove what it was made of
	@bin/testbed down

.PHONY: test-kube
test-kube: export BUILDER := tar
test-kube: setup-test bin/testbed build image ## the end-to-end tests on real Kubernetes, which comes and goes with them (docs/testbed.md)
	@scripts/leak-check testbed/test-kube

.PHONY: bin/testbed
bin/testbed:
	@cd testbed && go build -trimpath -buildvcs=false -ldflags "-s -w" -o ../bin/testbed .

.PHONY: test-inside
test-inside: lint darwin build guest-kernel test-unit test-timed test-user

.PHONY: test-unit
test-unit: ## tests that need no measuring, with the race detector if there is a C compiler
	@packages=$$(go list ./... | grep -vE '/(internal/($(timed))|tools/loadbench)(/|$$)'); \
	if command -v gcc >/dev/null; then \
		echo "go test -race (all but $(timed) and loadbench)"; \
		CGO_ENABLED=1 go test -race $$packages; \
	else \
		echo "go test (all but $(timed) and loadbench); install gcc for the race detector"; \
		go test $$packages; \
	fi

.PHONY: test-timed
test-timed: ## tests that load and measure, one package at a time
	@echo "go test -p 1 ($(timed) and loadbench)"; \
	PATH=$(CURDIR)/bin:$$PATH go test -p 1 -count=1 -timeout 40m $$(go list ./... | grep -E '/(internal/($(timed))|tools/loadbench)(/|$$)')

.PHONY: guest-kernel
guest-kernel: build ## the kernel of guests, in the cache
	@bin/cnibench vm -- true || echo "no guest boots here: tests that need one skip, or fail in CI"

.PHONY: test-user
test-user: ## tests that must hold for an ordinary user as well
	@# What runs in a guest is root there, whoever boots it.
	go test -p 1 -count=1 -skip InGuest -exec '$(CURDIR)/scripts/test-as-user' $(user)

.PHONY: darwin
darwin: ## the parts that read, report and compare build for another system
	GOOS=darwin go build ./...

.PHONY: lint
lint: bin/tools/staticcheck ## gofmt, go vet, staticcheck, errcheck, errorlint, of the test bed's module too
	@failed=; \
	tools=$(CURDIR)/bin/tools; \
	run() { echo "$$*"; "$$@" || failed=1; }; \
	unformatted=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go' -not -path './.git/*')); \
	[ -z "$$unformatted" ] || { echo "not formatted, run make fmt: $$unformatted"; failed=1; }; \
	for module in . testbed; do \
		cd $$module; \
		run go vet ./...; \
		run $$tools/staticcheck ./...; \
		run $$tools/errcheck -ignoretests -exclude $(CURDIR)/scripts/errcheck-exclude ./...; \
		run $$tools/go-errorlint ./...; \
	done; \
	[ -z "$$failed" ]

bin/tools/staticcheck: tools/lint/go.mod tools/lint/go.sum
	cd tools/lint && go build -o ../../bin/tools/ tool
	@touch $@

.PHONY: ui
ui: ui/node_modules/.package-lock.json ## the page's script from ui/, for which TestBundleIsCurrent asks
	npm --prefix ui run build

.PHONY: ui-check
ui-check: ui/node_modules/.package-lock.json ## the committed script is what ui/ gives, byte for byte
	npm --prefix ui run check

ui/node_modules/.package-lock.json: ui/package-lock.json
	npm --prefix ui ci

.PHONY: generate
generate: ## the eBPF objects of internal/wire from their C sources; needs clang, llvm and libbpf-dev
	go generate ./internal/wire

.PHONY: fmt
fmt: ## gofmt
	gofmt -w $$(git ls-files '*.go')

.PHONY: cover
cover: setup-test ## coverage by package, bin/cover.html
	mkdir -p bin
	go test -p 1 -coverpkg ./... -coverprofile bin/cover.out ./...
	go tool cover -html bin/cover.out -o bin/cover.html
	go tool cover -func bin/cover.out | tail -1

.PHONY: fuzz
fuzz: ## every fuzz target for fuzztime=10s
	@for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(fuzztime) $$package; \
		done; \
	done

.PHONY: bench-load
bench-load: setup-bench-load build ## how accurate and how fast the load engine is, beside other load generators (docs/accuracy.md)
	@scripts/bench-load $(flags)

.PHONY: bench-record
bench-record: build ## what cnibench record costs, beside statexec where that is installed (some 3 minutes, quiet machine)
	scripts/bench-record

.PHONY: setup-demo setup-all setup-test setup-bench-load
setup-demo setup-all setup-test setup-bench-load: setup-%:
	@scripts/setup $*

.PHONY: clean
clean: ## what was built; runs stay
	rm -rf bin
