# Tests, and what they are run with.

build/tests/slowfs: tests/fault/slowfs.c
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE) $(call pkg,--cflags,fuse3) $(LDFLAGS) -o $@ $< \
	    $(call pkg,--libs,fuse3) -pthread

build/tests/spindle: tests/fault/spindle.c
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE) $(call pkg,--cflags,fuse3) $(LDFLAGS) -o $@ $< \
	    $(call pkg,--libs,fuse3) -lm -pthread

build/tests/evict.so: tests/nginx/evict.c
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE) -shared $(LDFLAGS) -o $@ $< -ldl

# A module of nginx, which nginx' own headers would fill with warnings.
NGINX_DIRS = objs src/core src/event src/event/modules src/event/quic src/os/unix src/http src/http/modules \
    src/http/v2 src/http/v3
$(NGINX_BUILD)/several.so: tests/nginx/several.c $(NGINX_MODULE)
	$(call say,CC)$(COMPILE) -shared $(NGINX_DIRS:%=-isystem $(NGINX_BUILD)/%) $(LDFLAGS) -o $@ $<

TESTED_linux = $(EXAMPLES:%=build/asan/examples/%) examples debug build/debug/unit/test_sink fault build/tests/slowfs \
    build/tests/spindle bench-tools \
    $(if $(NGINX_CONFIGURE),nginx-module build/tests/evict.so $(NGINX_BUILD)/several.so) \
    $(if $(GO_INSTALLS),build/pebble/pebble)
# From 1.21 on, go fetches the toolchain that a module asks for.
GO_INSTALLS = $(shell go version 2>/dev/null | awk '{ split(substr($$3, 3), v, "."); if (v[1] > 1 || v[2] >= 21) print "y" }')
# A make of its own: the sources of nginx are there only after the installation.
tested: all $(SANITIZERS) unit $(TESTED_$(OS))
test test-all:
	@sh conf/install-deps.sh build test nginx $(if $(filter test-all,$@),kernels)
	@+$(SUBMAKE) WERROR=1 tested
	@PAGEWISE_RELEASE=$(CURDIR)/build/pagewise \
	    PAGEWISE_DEBUG=$(CURDIR)/build/debug/pagewise \
	    PAGEWISE_FAULT=$(CURDIR)/build/fault/pagewise \
	    SLOWFS=$(CURDIR)/build/tests/slowfs \
	    SPINDLE=$(CURDIR)/build/tests/spindle \
	    $(PYTHON) tests/run $(if $(filter test-all,$@),--all) $(UNIT) $(FUZZ) -- $(PYTEST_ARGS)

# The first build alone, and what a patch breaks most often: minutes, without root.
check:
	@sh conf/install-deps.sh build check
	@+$(SUBMAKE) WERROR=1 SANITIZERS=asan checked
# The other checks take what the tests, which wait for much, leave of the processors.
checked: check-tests check-rooms lint-clang-format lint-names lint-messages lint-programs \
    $(if $(filter linux,$(OS)),sim-same sim-other)
check-tests: asan unit
	@MAKEFLAGS= $(PYTHON) tests/run --check $(UNIT) $(FUZZ) -- $(PYTEST_ARGS)
check-rooms: asan
	@$(PYTHON) tests/rooms build/asan
.PHONY: checked check-tests check-rooms

# The debug build: sanitizers take too long there.
KERNEL_UNIT = $(UNIT_C:tests/unit/%.c=build/debug/unit/%)
test-kernels:
	@sh conf/install-deps.sh build test kernels
	@+$(SUBMAKE) WERROR=1 all debug fault build/tests/slowfs build/tests/spindle bench-tools $(KERNEL_UNIT)
	@$(PYTHON) tests/kernels/run $(ARGS) $(KERNEL_UNIT) -- $(PYTEST_ARGS)

test-clients:
	@sh conf/install-deps.sh build test clients
	@+$(SUBMAKE) build/pagewise
	@CLIENTS_ALL=1 PAGEWISE=$(CURDIR)/build/pagewise $(PYTHON) -m pytest -q -p no:cacheprovider \
	    tests/http/test_tls_clients.py tests/http/test_http2_clients.py \
	    tests/http/test_listing_clients.py $(PYTEST_ARGS)

# The current ACME server for tests, where Go can build it: tests/http/acme.py.
PEBBLE = 2.10.1
build/pebble/pebble:
	@mkdir -p $(@D)
	$(call say,GO)GOBIN=$(abspath $(@D)) go install github.com/letsencrypt/pebble/v2/cmd/pebble@v$(PEBBLE) >$@.log 2>&1 || \
	    echo "pagewise: cannot build Pebble $(PEBBLE) (see $@.log): the tests use the system's"

# With sanitizers.
H2SPEC = build/h2spec/h2spec
$(H2SPEC):
	@mkdir -p $(@D)
	@GOBIN=$(abspath $(@D)) go install github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible
h2spec:
	@sh conf/install-deps.sh build test h2spec
	@+$(SUBMAKE) asan $(H2SPEC)
	@PAGEWISE=$(CURDIR)/build/asan/pagewise $(PYTHON) tests/h2spec $(H2SPEC)

# Debian has no sslyze.
SSLYZE = 6.3.1
build/scan/python/sslyze:
	@mkdir -p $(@D)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action ignore \
	    --target $(@D) sslyze==$(SSLYZE)
scan-tls:
	@sh conf/install-deps.sh build scan
	@+$(SUBMAKE) build/pagewise build/scan/python/sslyze
	@PAGEWISE=$(CURDIR)/build/pagewise PYTHONPATH=$(CURDIR)/build/scan/python \
	    $(PYTHON) tests/scan_tls build/scan

# Others' suites: tests/judges.  NGINX_TESTS and TLSFUZZER are checkouts.
judges: export NGINX_TESTS := $(NGINX_TESTS)
judges: export TLSFUZZER := $(TLSFUZZER)
judges:
	@sh conf/install-deps.sh build judges
	@+$(SUBMAKE) all $(if $(NGINX_TESTS),nginx-module)
	@+$(SUBMAKE) $(H2SPEC) 2>/dev/null || echo "pagewise: no h2spec: Go cannot build it"
	@PAGEWISE=$(CURDIR)/build/pagewise $(PYTHON) tests/judges/run $(ARGS) build/judges

# Findings are in build/fuzz/found, what was learnt in build/fuzz/corpus.
TARGET = $(FUZZ_C:tests/fuzz/fuzz_%.c=%)
FUZZ_SECONDS = 60
fuzz:
	@sh conf/install-deps.sh build fuzz
	@+$(SUBMAKE) $(TARGET:%=build/fuzz/fuzz_%)
	@$(PYTHON) tests/fuzz/run --seconds $(FUZZ_SECONDS) $(TARGET) -- $(ARGS)

# Each call at each site with each send path, the first times and not only once: the
# tests of the fault layer, in full.
faults:
	@sh conf/install-deps.sh build test
	@+$(SUBMAKE) WERROR=1 asan fault
	@FAULTS_LONG=1 PAGEWISE_TEST_SECONDS=7200 $(PYTHON) -m pytest -q -s -p no:cacheprovider \
	    $(wildcard tests/fault/test_inject_*.py) $(PYTEST_ARGS)

SOAK_MINUTES = 30
SOAK_BUILD = obj
soak:
	@sh conf/install-deps.sh build soak
	@+$(SUBMAKE) build/$(SOAK_BUILD)/pagewise
	@mkdir -p build/soak; exec $(PYTHON) tests/soak/soak.py --minutes $(SOAK_MINUTES) \
	    --binary build/$(SOAK_BUILD)/pagewise --report build/soak/report.md $(ARGS)

soak-nginx:
	@sh conf/install-deps.sh build soak nginx
	@+$(SUBMAKE) nginx-module
	@exec $(PYTHON) tests/nginx/soak_nginx.py --minutes $(SOAK_MINUTES) $(ARGS)

LOSSLESS_SECONDS = 60
lossless:
	@sh conf/install-deps.sh build soak
	@+$(SUBMAKE) build/$(SOAK_BUILD)/pagewise
	@exec $(PYTHON) tests/soak/lossless.py --seconds $(LOSSLESS_SECONDS) \
	    --binary build/$(SOAK_BUILD)/pagewise $(ARGS)

# A simulated world for the objects of library and server as they ship: tests/sim/world.h.
SIM_C := $(wildcard tests/sim/*.c)
SIM_O = $(SIM_C:%.c=build/$(1)/%.o)
define sim
build/$(1)/sim: $(SIM_O) $(LIB_C:%.c=build/$(1)/%.o) $(SERVER_C:%.c=build/$(1)/%.o)
	$$(call say,LD)$$(CC) -nostdlib -r -o $$@.o $$$$(nm $(SIM_O) | sed -n 's/.* T __wrap_/-Wl,--wrap=/p') \
	    $(LIB_C:%.c=build/$(1)/%.o) $(SERVER_C:%.c=build/$(1)/%.o) \
	    $$$$(for l in event_extra event_core nghttp2 http_parser; do $$(CC) -print-file-name=lib$$$$l.a; done)
	@$$(CC) $$(CFLAGS) $$(SANITIZE_$(1)) $$(LINK_$(1)) $$(LDFLAGS) -o $$@ $(SIM_O) $$@.o \
	    $$$$(nm $(SIM_O) | sed -n 's/.* U __real_\(.*\)/-Wl,--defsym=__real_\1=\1/p') \
	    $$(filter-out -levent% -lnghttp2 -lhttp_parser,$$(LIBS))
endef
$(foreach f,obj asan,$(eval $(call sim,$(f))))
SIM_BUILD = obj
SIM_SECONDS = 60
sim: build/$(SIM_BUILD)/sim
	@$< $(if $(SEED),--seed $(SEED),--seconds $(SIM_SECONDS)) $(ARGS)
# The same seeds each time, and others.
sim-same: build/obj/sim
	@$< --no-table --seconds 15
sim-other: build/obj/sim
	@$< --no-table --seconds 15 --first $$(od -An -N4 -tu4 /dev/urandom)
.PHONY: sim sim-same sim-other
