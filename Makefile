# cnibench: `make help` lists the targets.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export CGO_ENABLED := 0
# The same for every build, vet and test: what one has compiled the others reuse. The compiler
# may take memory for time: it takes a fifth less CPU time, and what it makes is the same.
export GOFLAGS := -trimpath -buildvcs=false '-toolexec=env GOGC=800 GOMEMLIMIT=1GiB'

version := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
commit  := $(shell git rev-parse HEAD 2>/dev/null)
cli     := github.com/cnibench/cnibench/internal/cli
ldflags := -s -w -X $(cli).version=$(version) -X $(cli).commit=$(commit)
build   := -ldflags "$(ldflags)"

# What the demo compares: what every recent kernel runs, in some four minutes.
# rounds=2 is for trying: it shows how a run goes, and tells nothing apart.
rounds  ?=
demo    := macvlan,calico-noencap,flannel-host-gw,flannel-vxlan,canal,cilium,cilium-native,calico-ebpf

# The packages whose tests run alone, with the race detector, and so on.
packages = $(shell scripts/test-packages $(1))
# Tests of these run as an ordinary user, too.
user    := ./internal/result ./internal/arena/lab
fuzztime ?= 10s
part     ?= 0/1
# What fuzzing has found to be worth keeping, between runs of CI too.
fuzzcorpus ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cnibench-fuzz

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
	@bin/cnibench run --suite quick --arena lab --contenders $(demo) $(if $(rounds),--rounds $(rounds)) --out cnibench-run-$$(date +%Y%m%d-%H%M%S)

.PHONY: setup
setup: setup-all ## installs what every contender and suite of the lab and the microVM needs

.PHONY: build
build: pod-programs ## bin/cnibench, static, with the program for pods of this machine's architecture (pods="amd64 arm64")
	scripts/build-small $(build) -o bin/cnibench .

# Of the target build: what it carries into pods. The same program gives the same bytes, and a
# file that others compile in is replaced whole, and only by other bytes.
pods ?= $(shell go env GOHOSTARCH)
.PHONY: pod-programs
pod-programs:
	@mkdir -p bin/pod
	@for a in $(pods); do \
		GOOS=linux GOARCH=$$a scripts/build-small -ldflags "-s -w -X main.version=$(version)" -o bin/pod/$$a ./pod || exit 1; \
		packed=internal/podprogram/programs/linux-$$a.gz; \
		gzip -9 -n -c bin/pod/$$a >bin/pod/$$a.gz || exit 1; \
		cmp -s bin/pod/$$a.gz $$packed || { cp bin/pod/$$a.gz bin/pod/$$a.new && mv bin/pod/$$a.new $$packed; } || exit 1; \
	done

.PHONY: image
image: pod-programs ## bin/cnibench-image.tar, or cnibench:dev in docker, podman or buildah: the image for pods of a cluster (name=, arch=, iperf3=, push=1)
	@for a in $(arch); do GOOS=linux GOARCH=$$a scripts/build-small $(build) -o bin/image/$$a/usr/local/bin/cnibench . || exit 1; done
	@IMAGE=$(name) IPERF3=$(iperf3) PUSH=$(push) scripts/image $(arch)

.PHONY: release
release: ## dist/: what people install, for each system; the same commit gives the same bytes (docs/dev/releasing.md)
	@cd tools/release && go run . -version "$(version)" -commit "$(commit)" -epoch "$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}" -ldflags "$(ldflags)" -demo $(demo) $(release)

.PHONY: test-release
test-release: setup-test-fresh ## makes a release twice, holds it against krew and itself, uses the .deb on a machine as good as new (some minutes)
	cd tools/release && go test -count=1 -timeout 40m ./...

.PHONY: flanneld
flanneld: ## bin/flanneld, flannel's own daemon from its published module: for contender flannel-udp and the proof of the others (needs a C compiler; some minutes)
	cd tools/flanneld && CGO_ENABLED=1 go build -ldflags "-s -w" -o ../../bin/flanneld github.com/flannel-io/flannel

.PHONY: test
test: setup-test build ## every test that needs no guest, browser or Kubernetes and measures nothing; CI=true runs simulations whole, and the race detector
	@scripts/leak-check $(MAKE) -k -j 2 --no-print-directory test-lab test-unit test-user

.PHONY: test-slow
test-slow: setup-test-slow build ## tests that measure for real or drive a browser: a part of CI
	@scripts/leak-check $(MAKE) --no-print-directory test-slow-inside

.PHONY: test-slow-inside
test-slow-inside:
	@echo "go test -p 3 (what measures, what drives a browser)"
	@CNIBENCH_TEST_SLOW=1 $(beside) -p 3 -run '$(shell scripts/test-packages slow-tests)' $(call packages,slow)

.PHONY: test-all
test-all: test test-slow check test-machines test-release test-fresh ## everything that CI runs, some 50 minutes on 2 CPUs

.PHONY: testbed-up
testbed-up: setup-test-kube bin/testbed ## a real Kubernetes cluster on this machine, for tests (docs/dev/testbed.md); flags= has more
	@bin/testbed up $(flags)

.PHONY: testbed-down
testbed-down: bin/testbed ## end that cluster and remove what it was made of
	@bin/testbed down

.PHONY: test-kube
test-kube: export BUILDER := tar
test-kube: setup-test-kube bin/testbed build image ## the end-to-end tests on real Kubernetes, which comes and goes with them (docs/dev/testbed.md)
	@scripts/leak-check testbed/test-kube

.PHONY: test-guest-kube
test-guest-kube: setup-test-guest setup-test-kube setup-test-products bin/testbed build guest-kernel ## real pod networks that this kernel cannot carry, on the test bed in a guest: correctness only, a quarter of an hour each; products="flannel-wireguard …" (docs/dev/testbed.md)
	@scripts/leak-check testbed/test-guest-kube $(products)

.PHONY: test-products
test-products: export BUILDER := tar
test-products: setup-test-products bin/testbed build image ## the same for products that take longer to build than CI has: Calico, Canal, Kube-OVN (docs/dev/testbed.md)
	@scripts/leak-check testbed/test-kube products

.PHONY: test-machines
test-machines: export BUILDER := tar
test-machines: setup-test-guest setup-test-kube flanneld bin/testbed build image ## test-guest and test-kube side by side: guests compute, clusters mostly wait
	@scripts/leak-check $(MAKE) -k -j 2 -Otarget --no-print-directory test-guest-inside test-kube-inside

.PHONY: test-kube-inside
test-kube-inside:
	@TIMEFORMAT="test-kube took %lR"; time testbed/test-kube

.PHONY: bin/testbed
bin/testbed:
	@cd testbed && go build -ldflags "-s -w" -o ../bin/testbed .

.PHONY: fidelity
fidelity: export BUILDER := tar
fidelity: setup-test-kube bin/testbed build image ## holds lab forms against products="kuberouter flannel-vxlan" on a test bed that is up without a pod network (docs/dev/fidelity.md); out=bin/fidelity
	@scripts/fidelity $(or $(out),bin/fidelity) $(products)

.PHONY: test-fresh
test-fresh: setup-test-fresh ## README's first command on a machine as good as new, as root and as an ordinary user (CONTRIBUTING.md; needs root)
	@scripts/test-fresh

# No test target vets: make check does, and cold it takes as long as half of the compiler.
.PHONY: test-unit
test-unit: $(if $(filter true,$(CI)),test-plain test-race) ## tests without labs; with CI=true the race detector is on for what runs in parallel
ifneq ($(CI),true)
	@echo "go test (what runs no lab)"
	@go test -vet=off $(call packages,plain) $(call packages,race)
endif

.PHONY: test-plain
test-plain:
	@echo "go test (what runs no lab and nothing in parallel)"
	@go test -vet=off $(call packages,plain)

.PHONY: test-race
test-race:
	@if command -v gcc >/dev/null; then \
		echo "go test -race (what runs in parallel)"; \
		CGO_ENABLED=1 go test -vet=off -race $(call packages,race); \
	else \
		echo "go test (what runs in parallel); install gcc for the race detector"; \
		go test -vet=off $(call packages,race); \
	fi

# Tests of labs, servers and loads: with the program as make has built it, each time anew.
beside = PATH=$(CURDIR)/bin:$$PATH CNIBENCH_TEST_PROGRAM=$(CURDIR)/bin/cnibench go test -vet=off -parallel 8 -count=1 -timeout 20m -exec '$(CURDIR)/scripts/test-apart'

.PHONY: test-lab
test-lab: build ## tests that run labs, servers and loads, three packages at a time: they mostly wait
	@echo "go test -p 3 (what runs labs)"
	@$(beside) -p 3 $(call packages,alone)

.PHONY: test-guest
test-guest: setup-test-guest build flanneld ## tests that boot another kernel, and those that want flannel's own daemon
	@scripts/leak-check $(MAKE) --no-print-directory test-guest-inside

.PHONY: test-guest-inside
test-guest-inside: guest-kernel
	@echo "go test -run 'Guest|Flanneld'"
	@TIMEFORMAT="test-guest took %lR"; time PATH=$(CURDIR)/bin:$$PATH CNIBENCH_TEST_GUEST=1 go test -vet=off -p 1 -count=1 -timeout 60m -run 'Guest|Flanneld' $(call packages,guest)

.PHONY: guest-kernel
guest-kernel: build ## the kernel of guests, in the cache
	@bin/cnibench vm -- true || echo "no guest boots here: tests that need one skip, or fail in CI"

.PHONY: test-user
test-user: ## tests that must hold for an ordinary user as well
	@echo "go test, as an ordinary user"
	@go test -vet=off -p 2 -count=1 -run "^Test[^/]*$$/^(nodes=2,mtu=1500)?$$" -exec '$(CURDIR)/scripts/test-as-user' $(user)

.PHONY: test-times
test-times: ## the slowest packages and tests of go test -json, from log= or of a run of all that make test runs
	@log=$(log); [ -n "$$log" ] || { log=bin/test.json; mkdir -p bin; PATH=$(CURDIR)/bin:$$PATH go test -json -p 1 -count=1 $(call packages,plain) $(call packages,race) $(call packages,alone) >$$log || true; }; \
	awk -F '"' -f scripts/test-times.awk $$log | sort -k 2nr | head -40

.PHONY: check
check: lint darwin ## linters, and the build for another system

.PHONY: darwin
darwin: ## the parts that read, report and compare build for another system
	GOOS=darwin go build ./...

.PHONY: lint
lint: bin/tools/staticcheck ## gofmt, go vet, staticcheck, errcheck, errorlint, of the test bed's and the release's modules too; actionlint, govulncheck
	@failed=; \
	tools=$(CURDIR)/bin/tools; \
	run() { echo "$$*"; "$$@" || failed=1; }; \
	unformatted=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go' -not -path './.git/*')); \
	[ -z "$$unformatted" ] || { echo "not formatted, run make fmt: $$unformatted"; failed=1; }; \
	run $$tools/actionlint -shellcheck= -pyflakes=; \
	run scripts/vulncheck $$tools/govulncheck; \
	for module in . testbed tools/release; do \
		cd $(CURDIR)/$$module; \
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
generate: ## the eBPF objects of internal/arena/lab/wire/ebpf from their C sources; needs clang, llvm and libbpf-dev
	go generate ./internal/arena/lab/wire/ebpf

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
fuzz: ## every fuzz target for fuzztime=10s; part=K/N is each Nth of them from the Kth, the corpus is kept in fuzzcorpus=
	@part=$(part); n=0; failed=; \
	for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			n=$$((n + 1)); \
			[ $$((n % $${part#*/})) -eq $$(($${part%/*} % $${part#*/})) ] || continue; \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(fuzztime) $$package -args -test.fuzzcachedir="$(fuzzcorpus)/$$package" || failed=1; \
		done; \
	done; \
	[ -z "$$failed" ]

# A tenth of the targets, another one each day: a minute each where it matters.
.PHONY: fuzz-today
fuzz-today: ## the fuzz targets whose turn it is: a tenth of them, a minute each
	@$(MAKE) --no-print-directory fuzz fuzztime=1m part=$$((10#$$(date +%j) % 10))/10

.PHONY: bench-diagnose
bench-diagnose: build ## what diagnose finds of faults that are planted in the lab, and of sound networks (docs/diagnose.md)
	@go run ./tools/diagnosebench $(flags)

.PHONY: bench-load
bench-load: setup-bench-load build ## how accurate and how fast the load engine is, beside other load generators (docs/dev/measurement.md)
	@scripts/bench-load $(flags)

.PHONY: bench-slices
bench-slices: build ## what a run's noise is made of, and which slices and leads agree with long ones (docs/dev/measurement.md; some 5 minutes, quiet machine)
	CGO_ENABLED=0 go build -trimpath -o bin/slicebench ./tools/slicebench
	bin/slicebench -cnibench bin/cnibench $(flags)

.PHONY: bench-reach
bench-reach: build ## how small a difference the demo shows on this machine (docs/dev/measurement.md; 4 minutes a run; flags="-runs 3 -busy -before OLD")
	CGO_ENABLED=0 go build -trimpath -o bin/reachbench ./tools/reachbench
	bin/reachbench -cnibench bin/cnibench -contenders $(demo) $(flags)

.PHONY: bench-record
bench-record: build ## what cnibench record costs, beside statexec where that is installed (some 3 minutes, quiet machine)
	scripts/bench-record

.PHONY: setup-demo
setup-demo:
	@scripts/setup --suite quick --contenders $(demo)

profiles := $(addprefix setup-,all test test-slow test-kube test-products test-guest test-fresh bench-load)
.PHONY: $(profiles)
$(profiles): setup-%:
	@scripts/setup $*

.PHONY: clean
clean: ## what was built; runs stay
	rm -rf bin internal/podprogram/programs/*.gz*
