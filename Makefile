# pagewise.  For GNU make (gmake on BSD): one Makefile, not recursive, all
# output under build/.
#
## Targets:
##   all          build/pagewise, build/pagewise-tool, build/libpagewise.a, .so, .pc
##   run          install what is missing, build, serve DIR on LISTEN:PORT
##   test         install what is missing, run every test with each sanitizer, count them
##   check        before a patch: unit tests, fuzz corpora, HTTP with the default path, format: 3 minutes, no root
##   test-all     the same with every send path in every build, and on other kernels: for releases, at night
##   test-kernels a part of them on Debian's kernels, emulated (Linux, x86_64);
##                ARGS=--storm: the laboratory's storm there
##   test-clients Java's, Go's and Chromium's clients over TLS and HTTP/2, GDAL and Zarr, beside those
##                of `make test`
##   h2spec       its cases, in clear text and over TLS (Go builds it)
##   scan-tls     testssl.sh and sslyze against each profile: build/scan (5 minutes)
##   soak         everything at once for SOAK_MINUTES, all bytes verified: build/soak/report.md
##   lossless     SIGHUP, SIGUSR2, SIGTERM every two seconds, while clients ask: none is lost
##   fuzz         each harness of tests/fuzz for a minute (clang's libFuzzer)
##   lint         clang-format, clang-tidy, cppcheck, mandoc, the pages of the manual; quiet when clean
##   abi          writes lib/abi/, what the library promises, which lint compares: for a release
##   freebsd      builds for FreeBSD, on Linux: build/freebsd/pagewise (docs/guides/freebsd.md)
##   asan, tsan   build/asan/pagewise, build/tsan/pagewise with sanitizers
##   faults       each call of the server fails at each place, in each way (Linux)
##   debug        build/debug/pagewise with what tests ask from inside
##                all, asan, tsan and debug only build: `make deps` before that
##   nginx-module build/nginx/ngx_http_pagewise_module.so (lib/nginx/README.md)
##   soak-nginx   that in nginx, with reloads, for SOAK_MINUTES
##   bench        every scenario of the laboratory, shortened (root, Linux)
##   bench-full   the same in full: hours; bench-storm: one scenario
##   bench-hot    against the peers and the limit, files in memory: 20 minutes
##   bench-tls    the same over TLS: hot, storm, handshakes, idle connections; shortened
##   bench-h2     over HTTP/2: hot files, hot and cold streams, resets, idle connections; shortened
##   bench-profile  system calls, instructions, allocations of a request
##   results      docs/results.md and the pages behind it: every table measured from one commit,
##                little more than an hour; goes on where it was interrupted (root, Linux)
##   bench-peers  install the servers that it compares with
##   fleet        HAProxy and four nodes in network namespaces: docs/guides/fleet.md (root, Linux)
##   bench-ladders pipes, pages and rings, step by step (Linux)
##   bench-admission  cache policies, simulated: docs/admission.md (half a minute)
##   bench-tools  load generators, and a limit: build/bench/probe, slow, replay, idle,
##                handshake, h2storm, resets, limit
##   bench-nowait what asking for a page's residency costs (root, Linux)
##   bench-folio  what bringing in a window costs, page by page or as one
##   dist         build/dist/pagewise-VERSION.tar.gz of what is committed, its SBOM (SPDX), and the
##                distinfo of the port for FreeBSD
##   release      the signed tag vVERSION of what is committed
##   deb          Debian's packages of that: build/deb (conf/debian)
##   test-deb     installs, upgrades under load and removes them in fresh roots, and with systemd;
##                SUITES="bookworm trixie" ARGS="--tests 'tests/http tests/fault'": these instead
##   test-fresh   make run and make test in bare roots of Debian 12 and 13: before a release (2 hours)
##   image        an image for containers, built and tried without a registry: build/image/pagewise.tar
##   install, uninstall, clean, deps (only install what the build needs)
##   examples     build/obj/examples: servers on other event loops, as lib/examples has them
## Variables:
##   CC CFLAGS LDFLAGS PREFIX=/usr/local DESTDIR= WERROR=1 V=1 PYTHON
##   run:  DIR=conf/welcome PORT=8080 LISTEN=127.0.0.1 ARGS="more options"
##   test: PYTEST_ARGS="-k range" SANITIZERS="asan tsan": with the first of them
##         everything, with the second what is about the server; or one of them alone
##   soak: SOAK_MINUTES=30 SOAK_BUILD=obj (asan, tsan) ARGS="--seed 1 --tls --http2"
##   lossless: LOSSLESS_SECONDS=60 for each signal, ARGS="--every 2"
##   fuzz: TARGET="head range" FUZZ_SECONDS=60 ARGS="-max_len=100" FUZZ_CC=clang
##   bench, bench-full, bench-storm, bench-hot: ARGS="--path nodiskio --peer nginx"
##   bench-tls, bench-h2: ARGS="--path nodiskio-tls --peer nginx-tls --rounds 5"
##   results: ARGS="--only storm,hot --peer-binary nginx=/opt/nginx/sbin/nginx"

ifeq "the lines below stop every make but GNU make" ""
.error "pagewise needs GNU make: run gmake"
endif

MAKEFLAGS += --no-print-directory
OS := $(shell uname -s | tr A-Z a-z)
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
# The system's: another one in PATH would not see its packages.
PYTHON = $(if $(filter freebsd,$(OS)),/usr/local,/usr)/bin/python3
DESTDIR ?=
OBJCOPY ?= objcopy
DIR = conf/welcome
PORT = 8080
LISTEN = 127.0.0.1

WARN = -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes \
    -Wcast-qual -Wvla $(if $(WERROR),-Werror)
STD = -std=c11 -D_GNU_SOURCE -I.

# Asked when a recipe first needs it, once: `run` and `test` install pkg-config.
pkg = $(if $(shell pkg-config --exists $(2) && echo y),$(shell pkg-config $(1) \
    $(2)),$(error $(2): not found. Try `make deps`))
PKGS = libevent_core libevent_extra libconfuse libnghttp2 libssl libcrypto $(PKGS_$(OS)) $(CONFINE_$(OS))
PKGS_linux = liburing
CONFINE_linux = libseccomp
PKG_CFLAGS = $(eval PKG_CFLAGS := $(call pkg,--cflags,$(PKGS)))$(PKG_CFLAGS)
# Of pagewise-tool alone.
TOOL_PKGS = zlib libbrotlienc libzstd libcrypto
TOOL_LIBS = $(eval TOOL_LIBS := $(call pkg,--libs,$(TOOL_PKGS)))$(TOOL_LIBS)
PKG_LIBS = $(eval PKG_LIBS := $(call pkg,--libs,$(PKGS)))$(PKG_LIBS)
# What libpagewise needs by itself.
LIB_LIBS = $(if $(PKGS_$(OS)),$(call pkg,--libs,$(PKGS_$(OS))))
# Short lines, or with V=1 the whole command.
say = $(if $(V),,@echo "  $(1)	$@";)
COMPILE = $(CC) $(STD) $(WARN) -pthread -fPIC -MMD -MP $(PKG_CFLAGS) $(CFLAGS)
LIBS = $(PKG_LIBS) -lhttp_parser -lcrypt -pthread

# Of one system are most files of lib/os/, and these.
OF_linux = lib/disk/async_linux.c \
    $(addprefix server/process/,capability.c landlock.c sandbox_linux.c seccomp.c) \
    server/tls/kernel_linux.c server/tool/attribute_linux.c
OF_freebsd = lib/disk/async_freebsd.c server/process/sandbox_freebsd.c \
    server/tls/kernel_freebsd.c server/tool/attribute_freebsd.c
OF_OTHERS = $(filter-out $(OF_$(OS)),$(OF_linux) $(OF_freebsd))
LIB_C := $(filter-out lib/os/% lib/nginx/% lib/examples/% $(OF_OTHERS),$(wildcard lib/*.c lib/*/*.c)) \
    $(addprefix lib/os/,meter.c posix.c ring.c seed.c switches.c) $(wildcard lib/os/$(OS)*.c)
TOOL_C := $(filter-out $(OF_OTHERS),$(wildcard server/tool/*.c))
SERVER_C := $(filter-out server/main.c server/tool/% $(OF_OTHERS),$(wildcard server/*.c server/*/*.c)) \
    build/mime_table.c build/admin_page.c
# About Linux: its list of active pages, io_uring, how attributes are set, large folios, capabilities, pipes of a size, what is in memory, its /proc.
UNIT_NOT_freebsd = active async file_attribute filesystem folio memory_limit meter offset owner pipes reclaim residency share tcp_memory
UNIT_C := $(filter-out $(UNIT_NOT_$(OS):%=tests/unit/test_%.c),\
    $(wildcard tests/unit/test_*.c))
SANITIZERS = asan tsan
UNIT = $(foreach f,$(SANITIZERS),$(UNIT_C:tests/unit/%.c=build/$(f)/unit/%))
FUZZ_C := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_C := $(filter-out tests/fuzz/fuzz_main.c,$(FUZZ_C))
FUZZ = $(if $(filter asan,$(SANITIZERS)),$(FUZZ_C:tests/fuzz/%.c=build/asan/fuzz/%))
FLAVOURS = obj asan tsan debug fuzz freebsd
SANITIZE_asan = -fsanitize=address,undefined -fno-sanitize-recover=all \
    -fno-omit-frame-pointer -fno-optimize-sibling-calls -DPW_DEBUG
# The debug build tries from inside what a sandbox should refuse: tests/inside/.
INSIDE_C = $(INSIDE_$(OS))
INSIDE_linux = $(wildcard tests/inside/*.c)
SANITIZE_debug = -DPW_DEBUG $(if $(INSIDE_C),-DPW_INSIDE)
SANITIZE_tsan = -fsanitize=thread -fno-omit-frame-pointer -DPW_DEBUG
SANITIZE_fuzz = $(SANITIZE_asan) -fsanitize=fuzzer-no-link

all: build/pagewise build/pagewise-tool build/libpagewise.a build/libpagewise.so build/libpagewise.pc
asan: build/asan/pagewise build/asan/pagewise-tool
tsan: build/tsan/pagewise build/tsan/pagewise-tool
unit: $(UNIT) $(FUZZ)
debug: build/debug/pagewise build/debug/pagewise-tool
fault: build/fault/pagewise

# One tree per flavour: build/obj, build/asan, build/tsan, build/fuzz.
define flavour
build/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(call say,CC)$$(COMPILE) $$(SANITIZE_$(1)) -c -o $$@ $$<
build/$(1)/libpagewise.a: $(LIB_C:%.c=build/$(1)/%.o)
build/$(1)/server.a: $(SERVER_C:%.c=build/$(1)/%.o)
# q, because files of two rooms may have one name.
build/$(1)/libpagewise.a build/$(1)/server.a:
	@rm -f $$@
	$$(call say,AR)$$(AR) qcs $$@ $$^
build/$(1)/pagewise: build/$(1)/server/main.o build/$(1)/server.a \
    build/$(1)/libpagewise.a
	$$(call say,LD)$$(CC) $$(CFLAGS) $$(SANITIZE_$(1)) $$(LDFLAGS) -o $$@ \
	    $$^ $$(LIBS)
build/$(1)/pagewise-tool: $(TOOL_C:%.c=build/$(1)/%.o) build/$(1)/server.a \
    build/$(1)/libpagewise.a
	$$(call say,LD)$$(CC) $$(CFLAGS) $$(SANITIZE_$(1)) $$(LDFLAGS) -o $$@ \
	    $$^ $$(TOOL_LIBS) -pthread
endef
$(foreach f,$(FLAVOURS),$(eval $(call flavour,$(f))))

build/debug/server.a: $(INSIDE_C:%.c=build/debug/%.o)

build/pagewise build/pagewise-tool: build/%: build/obj/%
	@ln -f $< $@

# One object, in which a program that links it sees nothing but pw_*.
build/libpagewise.a: $(LIB_C:%.c=build/obj/%.o)
	@rm -f $@
	$(call say,AR)$(CC) $(CFLAGS) -nostdlib -r -o build/obj/libpagewise.o $^ && \
	    $(OBJCOPY) --wildcard --keep-global-symbol='pw_*' build/obj/libpagewise.o && \
	    $(AR) qcs $@ build/obj/libpagewise.o

# The number changes when a program that was built before would break: CHANGELOG.md.
SONAME = libpagewise.so.1
VERSION := $(shell sed -n 's/^\#define PW_VERSION "\(.*\)"/\1/p' lib/pagewise.h)
define shared
	$(call say,LD)$(CC) $(CFLAGS) -shared \
	    -Wl,-soname,$(SONAME) -Wl,-z,defs \
	    -Wl,--version-script=lib/pagewise.map $(LDFLAGS) \
	    -o $(@D)/$(SONAME) $(filter %.o,$^) $(LIB_LIBS) -pthread
	@ln -sf $(SONAME) $@
endef
build/libpagewise.so: $(LIB_C:%.c=build/obj/%.o) lib/pagewise.map Makefile
	$(shared)
build/freebsd/libpagewise.so: $(LIB_C:%.c=build/freebsd/%.o) lib/pagewise.map
	$(shared)

# Of a static program liburing is wanted as well.
build/libpagewise.pc: lib/libpagewise.pc.in lib/pagewise.h Makefile
	@mkdir -p $(@D)
	$(call say,GEN)sed -e 's,@PREFIX@,$(PREFIX),' -e 's,@LIBDIR@,$(LIBDIR),' -e 's,@VERSION@,$(VERSION),' \
	    -e 's,@REQUIRES@,$(PKGS_$(OS)),' $< >$@

# A text as one C string, named after the file; $(1) are sed's commands.
string = $(call say,GEN){ echo 'extern const char $(*F)[];'; \
	  echo 'const char $(*F)[] ='; \
	  sed $(1) -e 's/["\\]/\\&/g' -e 's/.*/    "&\\n"/' $<; \
	  echo '    "";'; } > $@.tmp; mv $@.tmp $@

# Comments and empty lines are left out.
build/mime_table.c: build/%.c: conf/mime.types
	@mkdir -p $(@D)
	$(call string,-e '/^[[:space:]]*#/d' -e '/^[[:space:]]*$$/d' -e 's/	/ /g')

build/admin_page.c: build/%.c: server/admin/admin.html
	@mkdir -p $(@D)
	$(call string)

# Unit tests run with sanitizers; those of the debug build, on other kernels.  What a test
# defines as __wrap_X is called instead of X.
define unit
build/$(1)/unit/%: tests/unit/%.c build/$(1)/server.a build/$(1)/libpagewise.a
	@mkdir -p $$(@D)
	$$(call say,CC)$$(COMPILE) $$(SANITIZE_$(1)) $$(LDFLAGS) -o $$@ \
	    $$$$(sed -n 's/^__wrap_\([a-z_]*\)(.*/-Wl,--wrap=\1/p' $$<) \
	    $$< $$(filter %.a,$$^) $$(LIBS) $$(call pkg,--libs,cmocka)
endef
$(foreach f,asan tsan debug,$(eval $(call unit,$(f))))

# A harness over the inputs that are there, and with a fuzzer that makes more.
build/asan/fuzz/%: tests/fuzz/%.c tests/fuzz/fuzz_main.c build/asan/server.a \
    build/asan/libpagewise.a
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE) $(SANITIZE_asan) $(LDFLAGS) -o $@ \
	    $(filter %.c %.a,$^) $(LIBS)

FUZZ_CC = clang
build/fuzz/%: override CC = $(FUZZ_CC)
build/fuzz/fuzz_%: tests/fuzz/fuzz_%.c build/fuzz/server.a \
    build/fuzz/libpagewise.a
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE) $(SANITIZE_asan) -fsanitize=fuzzer $(LDFLAGS) \
	    -o $@ $(filter %.c %.a,$^) $(LIBS)

# The server with sanitizers once more, linked so that each call which a test
# may let fail goes through tests/fault/inject*.c.
INJECT_C = $(wildcard tests/fault/inject*.c)
INJECT_O = $(INJECT_C:%.c=build/asan/%.o)
build/fault/pagewise: build/asan/server/main.o build/asan/server.a \
    build/asan/libpagewise.a $(INJECT_O)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(CFLAGS) $(SANITIZE_asan) $(LDFLAGS) -o $@ \
	    $$(nm $(INJECT_O) | sed -n 's/.* T __wrap_/-Wl,--wrap=/p') $^ $(LIBS)

# A module has the version and the flags of the nginx that loads it: Debian's package nginx-dev has
# both, of another nginx these are its sources and what `nginx -V` says.  configure writes where
# it stands, hence the links.
NGINX_SRC = /usr/share/nginx/src
NGINX_FLAGS = $$(sed -n 's/^NGX_CONF_FLAGS=(\(.*\))/\1/p' $(NGINX_SRC)/conf_flags)
# A tree of git has it in auto/.
NGINX_CONFIGURE = $(firstword $(wildcard $(NGINX_SRC)/configure $(NGINX_SRC)/auto/configure))
NGINX_CC_OPT = -O2 -g
NGINX_LD_OPT =
NGINX_BUILD = build/nginx
NGINX_LIB = build/libpagewise.a
NGINX_MODULE = $(NGINX_BUILD)/ngx_http_pagewise_module.so
nginx-module: $(NGINX_MODULE)
$(NGINX_BUILD)/Makefile: lib/nginx/config
	@[ -n "$(NGINX_CONFIGURE)" ] || \
	    { echo "no sources of nginx in $(NGINX_SRC): install nginx-dev, or set NGINX_SRC" >&2; exit 1; }
	@mkdir -p $(@D)
	@ln -sfn $(NGINX_SRC)/auto $(@D)/auto
	@ln -sfn $(NGINX_SRC)/src $(@D)/src
	@cd $(@D) && PAGEWISE_INC=$(CURDIR)/lib \
	    PAGEWISE_LIBS="$(CURDIR)/$(NGINX_LIB) $(LIB_LIBS) -pthread -Wl,--exclude-libs,ALL" \
	    sh $(NGINX_CONFIGURE) $(NGINX_FLAGS) --with-compat --builddir=objs \
	    --with-cc-opt="$(NGINX_CC_OPT)" --with-ld-opt="$(NGINX_LD_OPT)" --add-dynamic-module=$(CURDIR)/lib/nginx >configure.log 2>&1 || \
	    { tail -5 configure.log; exit 1; }
$(NGINX_MODULE): $(NGINX_BUILD)/Makefile $(wildcard lib/nginx/*.[ch]) lib/pagewise.h $(NGINX_LIB)
	$(call say,NGX)$(MAKE) -C $(NGINX_BUILD) -f objs/Makefile modules >$(NGINX_BUILD)/make.log 2>&1 || \
	    { cat $(NGINX_BUILD)/make.log; exit 1; }
	@install -m 755 $(NGINX_BUILD)/objs/$(@F) $@

# Programs that use the library as others do: with its public header, and the static library.
EXAMPLES_linux = epoll libuv io_uring
EXAMPLES_freebsd = kqueue
EXAMPLES = $(EXAMPLES_$(OS))
EXAMPLE_PKGS = $(if $(findstring libuv,$@),libuv) $(PKGS_$(OS))
define example
build/$(1)/examples/%: lib/examples/%.c lib/examples/client.c lib/examples/client.h \
    lib/pagewise.h build/$(1)/libpagewise.a
	@mkdir -p $$(@D)
	$$(call say,CC)$$(CC) $$(STD) -Ilib $$(WARN) $$(CFLAGS) $$(SANITIZE_$(1)) $$(LDFLAGS) -o $$@ \
	    $$(filter %.c %.a,$$^) $$(if $$(PKGS_$$(OS)),$$(call pkg,--cflags --libs,$$(EXAMPLE_PKGS))) -pthread
endef
$(foreach f,obj asan freebsd,$(eval $(call example,$(f))))
examples: $(EXAMPLES:%=build/obj/examples/%)

build/tests/slowfs: tests/fault/slowfs.c
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE) $(call pkg,--cflags,fuse3) $(LDFLAGS) -o $@ $< \
	    $(call pkg,--libs,fuse3) -pthread

build/tests/evict.so: tests/nginx/evict.c
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE) -shared $(LDFLAGS) -o $@ $< -ldl

# For FreeBSD on Linux.  What is imported shows that the program is what it should be.
FREEBSD_NEEDS = kqueue kevent sendfile cap_enter aio_read
FREEBSD_LIBS = -levent_extra -levent_core -lconfuse -lnghttp2 -lssl -lcrypto
# pagewise-tool is only compiled, with the headers of this machine: its libraries are not there.
freebsd-all: build/freebsd/pagewise build/freebsd/libpagewise.so \
    $(EXAMPLES_freebsd:%=build/freebsd/examples/%) \
    $(UNIT_C:%.c=build/freebsd/%.o) $(TOOL_C:%.c=build/freebsd/%.o)
build/freebsd/include/zlib.h:
	@mkdir -p $(@D)
	@cp -R /usr/include/brotli /usr/include/zstd*.h \
	    $(wildcard /usr/include/zconf.h /usr/include/*-*/zconf.h) $(@D)
	@cp /usr/include/zlib.h $@
freebsd:
	@sh conf/install-deps.sh cross
	@+$(SUBMAKE) build/freebsd/include/zlib.h
	@+root=$$(sh conf/freebsd-sysroot.sh) && $(SUBMAKE) OS=freebsd WERROR=1 \
	    CC=$$root/bin/cc AR=$$root/bin/ar PKG_CFLAGS="-I$$root/include -Ibuild/freebsd/include" \
	    PKG_LIBS="-L$$root/lib $(FREEBSD_LIBS)" \
	    freebsd-all
	@nm -D build/freebsd/pagewise >build/freebsd/imports; \
	for call in $(FREEBSD_NEEDS); do \
		grep -q "U $$call\(@\|$$\)" build/freebsd/imports || \
		    { echo "build/freebsd/pagewise does not call $$call" >&2; exit 1; }; \
	done; file -b build/freebsd/pagewise | sed 's/, BuildID.*//'

# These start where nothing is installed: hence a second make for the rest.
JOBS = $(shell getconf _NPROCESSORS_ONLN)
SUBMAKE = $(MAKE) $(if $(V),,-s) \
    $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))

deps:
	@sh conf/install-deps.sh build

# Root serves as nobody, but what nobody may read (umask 077) as itself.
OTHERS_READ = [ -n "$$(find "$(DIR)" -prune -perm -005)" ]
run: deps
	@+$(SUBMAKE) all
	@user=; [ "$$(id -u)" -ne 0 ] || $(OTHERS_READ) || user="--user root"; \
	exec build/pagewise --root "$(DIR)" --listen "$(LISTEN):$(PORT)" \
	    --autoindex $$user $(ARGS)

TESTED_linux = $(EXAMPLES:%=build/asan/examples/%) examples debug build/debug/unit/test_sink fault build/tests/slowfs bench-tools \
    $(if $(NGINX_CONFIGURE),nginx-module build/tests/evict.so) \
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
	    $(PYTHON) tests/run $(if $(filter test-all,$@),--all) $(UNIT) $(FUZZ) -- $(PYTEST_ARGS)

# The first build alone, and what a patch breaks most often: minutes, without root.
check:
	@sh conf/install-deps.sh build check
	@+$(SUBMAKE) WERROR=1 SANITIZERS=asan asan unit lint-clang-format lint-names lint-messages
	@$(PYTHON) tests/rooms build/asan
	@$(PYTHON) tests/run --check $(filter build/asan/%,$(UNIT) $(FUZZ)) -- $(PYTEST_ARGS)

# The debug build: sanitizers take too long there.
KERNEL_UNIT = $(UNIT_C:tests/unit/%.c=build/debug/unit/%)
test-kernels:
	@sh conf/install-deps.sh build test kernels
	@+$(SUBMAKE) WERROR=1 all debug fault build/tests/slowfs bench-tools $(KERNEL_UNIT)
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

# Without root it measures what it can, and says what it left out.
SCENARIOS_bench = all --quick
SCENARIOS_bench-full = all
SCENARIOS_bench-storm = storm
SCENARIOS_bench-hot = hot
SCENARIOS_bench-tls = hot storm handshakes idle --quick \
    --set hot.cases=1K,16K,64K,1M,16M --set hot.seconds=4 $(if $(filter --path --path=% --peer --peer=%,$(ARGS)),,\
    --path nodiskio-tls --peer nginx-tls,h2o-tls,lighttpd-tls,caddy-tls)
SCENARIOS_bench-h2 = http2 streams resets idle --quick --set idle.protocol=http2
bench bench-full bench-storm bench-hot bench-tls bench-h2:
	@sh conf/install-deps.sh build bench
	@+$(SUBMAKE) all build/bench/admission $(TOOLS:%=build/bench/%) $(EXAMPLES:%=build/obj/examples/%)
	@bench/lab run $(SCENARIOS_$@) $(ARGS)

results:
	@sh conf/install-deps.sh build bench nginx
	@+$(SUBMAKE) all nginx-module build/tests/slowfs build/bench/admission $(PROFILE) $(LADDERS) \
	    $(TOOLS:%=build/bench/%) $(EXAMPLES:%=build/obj/examples/%)
	@bench/lab results $(ARGS)

bench-peers:
	@sh conf/install-deps.sh peers

fleet:
	@sh conf/install-deps.sh build bench fleet
	@+$(SUBMAKE) all
	@bench/fleet $(ARGS)

build/bench/nowait: bench/nowait.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(STD) $(WARN) -MMD -MP $(CFLAGS) $(LDFLAGS) -o $@ $<

bench-nowait: build/bench/nowait
	@build/bench/nowait $(ARGS)

build/bench/folio: bench/folio.c build/obj/libpagewise.a
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(STD) $(WARN) $(CFLAGS) $(LDFLAGS) -o $@ $^ \
	    $(LIB_LIBS) -pthread

bench-folio: deps
	@+$(SUBMAKE) build/bench/folio
	@build/bench/folio $(ARGS)

# The load generators, and what a server is compared with; the tests use those with sanitizers.
TOOLS = probe slow replay idle handshake h2storm resets limit
LOAD = $(CC) $(STD) $(WARN) $(CFLAGS)
LOAD_C = bench/client.c bench/client_http2.c bench/client_tls.c bench/frames.c bench/hdr.c
LOAD_H = bench/client.h bench/client_http2.h bench/client_tls.h bench/frames.h bench/hdr.h
LOAD_LIBS = $(call pkg,--libs,libnghttp2 libssl libcrypto)
$(TOOLS:%=build/bench/%): build/bench/%: bench/%.c $(LOAD_C) $(LOAD_H)
	@mkdir -p $(@D)
	$(call say,CC)$(LOAD) $(LDFLAGS) -o $@ $(filter %.c,$^) $(LOAD_LIBS)

$(TOOLS:%=build/asan/bench/%): build/asan/bench/%: bench/%.c $(LOAD_C) $(LOAD_H)
	@mkdir -p $(@D)
	$(call say,CC)$(LOAD) $(SANITIZE_asan) $(LDFLAGS) -o $@ $(filter %.c,$^) $(LOAD_LIBS)

LADDERS = build/bench/ladders/pipes build/bench/ladders/pages \
    build/bench/ladders/ring
build/bench/ladders/%: bench/ladders/%.c bench/ladders/report.c \
    bench/ladders/huge.c $(wildcard bench/ladders/*.h) build/obj/libpagewise.a
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(STD) $(WARN) $(CFLAGS) $(LDFLAGS) -o $@ \
	    $(filter %.c %.a,$^)
build/bench/ladders/pipes: bench/ladders/pair.c

# Policies of caches, simulated; one of them is lib/disk/admission.c.
ADMISSION_C = $(wildcard bench/admission/*.c)
ADMISSION_H = $(wildcard bench/admission/*.h)
build/bench/admission: $(ADMISSION_C) $(ADMISSION_H) build/obj/libpagewise.a
	@mkdir -p $(@D)
	$(call say,CC)$(LOAD) $(LDFLAGS) -o $@ $(filter %.c %.a,$^) -lm $(LIB_LIBS) -pthread
build/asan/bench/admission: $(ADMISSION_C) $(ADMISSION_H) build/asan/libpagewise.a
	@mkdir -p $(@D)
	$(call say,CC)$(LOAD) $(SANITIZE_asan) $(LDFLAGS) -o $@ $(filter %.c %.a,$^) -lm \
	    $(LIB_LIBS) -pthread

build/bench/openat2.so: bench/openat2.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(STD) $(WARN) $(CFLAGS) -fPIC -shared $(LDFLAGS) -o $@ $<

PROFILE = build/bench/limit build/bench/openat2.so
bench-profile:
	@sh conf/install-deps.sh build profile
	@+$(SUBMAKE) all $(PROFILE)
	@bench/lab profile $(ARGS)

bench-tools: $(PROFILE) $(LADDERS) build/bench/folio $(TOOLS:%=build/bench/%) $(TOOLS:%=build/asan/bench/%) \
    build/bench/admission build/asan/bench/admission

bench-admission:
	@sh conf/install-deps.sh build
	@+$(SUBMAKE) build/bench/admission
	@bench/lab admission $(ARGS)

bench-ladders:
	@sh conf/install-deps.sh build bench
	@+$(SUBMAKE) $(LADDERS)
	@bench/lab ladders $(ARGS)

C_EXAMPLES = $(wildcard lib/examples/*.[ch])
C_PRODUCT = $(filter-out $(C_EXAMPLES) lib/nginx/%,$(wildcard lib/*.[ch] lib/*/*.[ch] server/*.[ch] server/*/*.[ch]))
C_ALL = $(C_PRODUCT) $(C_EXAMPLES) $(wildcard tests/*/*.[ch])
lint:
	@sh conf/install-deps.sh build test lint
	@+$(SUBMAKE) lint-clang-format lint-clang-tidy lint-cppcheck lint-mandoc lint-seam \
	    lint-guards lint-header lint-names lint-rooms lint-messages lint-abi lint-docs

# Which system it is, only the files of one system know: no conditions, no headers of one.
SEAM = __(linux|FreeBSD|APPLE|unix)__|<linux/|<sys/(epoll|eventfd|event|capsicum|sysmacros)\.h>
# OpenSSL's names: TLS, and two hashes.
WITH_OPENSSL = server/tls/%.c server/tls/context_priv.h server/util/hmac.c server/tool/digest.c
lint-seam:
	@! grep -nE '$(SEAM)' \
	    $(filter-out lib/os/% $(OF_linux) $(OF_freebsd),$(C_PRODUCT))
	@! grep -n '<openssl/' $(filter-out $(WITH_OPENSSL),$(C_PRODUCT))

# A guard is the path; two headers with one guard shut each other out.
lint-guards:
	@for h in $(filter-out lib/pagewise.h %.c,$(C_PRODUCT)); do \
		guard=$$(echo $$h | tr a-z/. A-Z__); \
		[ "$$(grep -c "^#\(ifndef\|define\) $$guard\$$" $$h)" -eq 2 ] || \
		    { echo "$$h: its guard is not $$guard" >&2; exit 1; }; \
	done

# Other languages read the public header as C++ does.
lint-header:
	@clang++ -std=c++11 -fsyntax-only -Wall -Wextra -Wpedantic -Werror -x c++ lib/pagewise.h

# A function begins with its module's name, and no two have the same.
lint-names:
	@$(PYTHON) tests/lint_names

# Which room may use which, and that nothing goes in a circle: docs/design.md has the order.
lint-rooms: all
	@$(PYTHON) tests/rooms build/obj

# What a release has promised stays: lib/abi has the types of the public header and the symbols of
# the last one, of this processor.  New functions are no break.  A break needs a new SONAME.
ABI = lib/abi/libpagewise-$(shell uname -m).abi
ABI_SEEN = build/abi/headers
build/abi/new.abi: build/libpagewise.so
	@mkdir -p $(ABI_SEEN) && cp lib/pagewise.h $(ABI_SEEN)
	$(call say,ABI)abidw --no-show-locs --no-comp-dir-path --no-corpus-path --drop-private-types \
	    --exported-interfaces-only --headers-dir $(ABI_SEEN) --out-file $@ build/$(SONAME)
abi: build/abi/new.abi
	@mkdir -p lib/abi && cp build/abi/new.abi $(ABI)
lint-abi: build/abi/new.abi
	@[ ! -e $(ABI) ] || abidiff --no-added-syms $(ABI) build/abi/new.abi || \
	    { echo "a program built before would break: undo it, or change SONAME and run make abi" >&2; exit 1; }

# The committed list of the messages shows a changed message in a diff.
lint-messages:
	@$(PYTHON) tests/messages | diff -u tests/messages.txt - || \
	    { echo 'run tests/messages >tests/messages.txt' >&2; exit 1; }

# Links, lengths, spelling: the file says what.
lint-docs:
	@$(PYTHON) tests/lint_docs

lint-clang-format:
	@clang-format --dry-run --Werror $(C_ALL)

# One file a run: with more, version 14 takes every va_list for uninitialized.
# On stderr it counts the warnings that it does not show.
lint-clang-tidy:
	@mkdir -p build
	@ls $(LIB_C) $(filter server/%,$(SERVER_C)) $(TOOL_C) server/main.c | xargs -P $(JOBS) -n 1 sh -c 'clang-tidy --quiet \
	    --warnings-as-errors="*" "$$1" -- $(STD) $(PKG_CFLAGS)' \
	    clang-tidy 2>build/clang-tidy.err || { cat build/clang-tidy.err; exit 1; }

# It reads no system headers and cannot guess what a queue is; ctuuninitvar
# takes every output argument for an uninitialized one.
QUEUE_H = $(firstword $(wildcard /usr/include/sys/queue.h \
    /usr/include/*/sys/queue.h))
lint-cppcheck:
	@cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 \
	    --enable=warning,performance,portability --suppress=ctuuninitvar \
	    --include=$(QUEUE_H) -D_GNU_SOURCE -I. $(LIB_C) $(filter server/%,$(SERVER_C)) \
	    $(TOOL_C) server/main.c

lint-mandoc:
	@mandoc -T lint -W warning docs/man/*.[358]
	@! grep -L '^\.Sh EXAMPLES$$' docs/man/*.[358] | sed 's/$$/: it has no examples/' | grep .

# What is committed, and nothing that depends on when or where it is packed.
DIST = build/dist/pagewise-$(VERSION).tar.gz
dist:
	@$(PYTHON) conf/dist.py $(VERSION) build/dist

# Signed, unless TAG says otherwise.
TAG = -s
release:
	@[ -z "$$(git status --porcelain)" ] || { echo "release: commit what has changed first" >&2; exit 1; }
	@grep -q '^## $(VERSION)\( \|$$\)' CHANGELOG.md || \
	    { echo "release: CHANGELOG.md has no part for $(VERSION)" >&2; exit 1; }
	@git tag $(TAG) -m "pagewise $(VERSION)" v$(VERSION)

DEB_TREE = build/deb/pagewise-$(VERSION)
deb: dist
	@sh conf/install-deps.sh build nginx deb
	@rm -rf $(DEB_TREE) build/deb/pagewise_* build/deb/*.deb && mkdir -p build/deb && cp $(DIST) build/deb/pagewise_$(VERSION).orig.tar.gz
	@tar -xzf $(DIST) -C build/deb && cp -R $(DEB_TREE)/conf/debian $(DEB_TREE)/debian
	@cd $(DEB_TREE) && dpkg-buildpackage --no-sign $(DEB_ARGS) >../build.log 2>&1 || \
	    { tail -30 ../build.log; exit 1; }
	@lintian --fail-on error,warning build/deb/pagewise_$(VERSION)-*.changes
	@cp conf/container.conf build/deb
	@ls build/deb/*.deb

SUITES = bookworm trixie
test-deb: dist
	@sh conf/install-deps.sh roots
	@$(PYTHON) tests/packages/run --dist $(DIST) $(ARGS) $(SUITES)

# The README's two commands where nothing is installed: tests/packages/fresh.
test-fresh:
	@sh conf/install-deps.sh roots test
	@$(PYTHON) tests/packages/fresh $(ARGS) $(SUITES)

# Built and run without a registry: tests/packages/image.
image: deb
	@sh conf/install-deps.sh image
	@$(PYTHON) tests/packages/image build/deb/pagewise_$(VERSION)-*.deb
	@ls build/image/pagewise.tar

SHARE = $(DESTDIR)$(PREFIX)/share
BASH_DIR = $(SHARE)/bash-completion/completions
ZSH_DIR = $(SHARE)/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
FISH_DIR = $(SHARE)/fish/vendor_completions.d
# Where that nginx looks for modules; the module is installed if it was built.
NGINX_MODULES = /usr/lib/nginx/modules
PC_DIR = $(DESTDIR)$(if $(filter freebsd,$(OS)),$(PREFIX)/libdata,$(LIBDIR))/pkgconfig
# For the system's way to start it: units to be copied, a script that is in its place.
INIT_linux = conf/systemd
RC_D_freebsd = $(PREFIX)/etc/rc.d
RC_D = $(RC_D_$(OS))
install: all
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/libexec $(DESTDIR)$(LIBDIR) \
	    $(PC_DIR) $(DESTDIR)$(PREFIX)/include $(SHARE)/man/man3 $(SHARE)/man/man5 \
	    $(SHARE)/man/man8 \
	    $(SHARE)/pagewise
	install -m 755 build/pagewise $(DESTDIR)$(PREFIX)/sbin
	install -m 755 build/pagewise-tool $(DESTDIR)$(PREFIX)/libexec
	install -m 644 build/libpagewise.a $(DESTDIR)$(LIBDIR)
	install -m 755 build/$(SONAME) $(DESTDIR)$(LIBDIR)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libpagewise.so
	sed -e 's,^prefix=.*,prefix=$(PREFIX),' -e 's,^libdir=.*,libdir=$(LIBDIR),' build/libpagewise.pc >$(PC_DIR)/libpagewise.pc
	chmod 644 $(PC_DIR)/libpagewise.pc
	install -m 644 lib/pagewise.h $(DESTDIR)$(PREFIX)/include
	install -m 644 docs/man/*.3 $(SHARE)/man/man3
	[ ! -e $(NGINX_MODULE) ] || { install -d $(DESTDIR)$(NGINX_MODULES) && \
	    install -m 644 $(NGINX_MODULE) $(DESTDIR)$(NGINX_MODULES); }
	install -m 644 docs/man/*.5 $(SHARE)/man/man5
	install -m 644 docs/man/*.8 $(SHARE)/man/man8
	install -d $(BASH_DIR) $(ZSH_DIR) $(FISH_DIR)
	install -m 644 conf/completion/pagewise.bash $(BASH_DIR)/pagewise
	install -m 644 conf/completion/_pagewise $(ZSH_DIR)/_pagewise
	install -m 644 conf/completion/pagewise.fish $(FISH_DIR)/pagewise.fish
	install -m 644 conf/pagewise.conf conf/mime.types $(SHARE)/pagewise
	cp -R conf/welcome conf/haproxy conf/prometheus conf/grafana $(INIT_$(OS)) $(SHARE)/pagewise
ifneq "$(INIT_$(OS))" ""
	sed 's,/usr/local/sbin,$(PREFIX)/sbin,' conf/systemd/pagewise.service \
	    >$(SHARE)/pagewise/systemd/pagewise.service
endif
ifneq "$(RC_D)" ""
	install -d $(DESTDIR)$(RC_D)
	sed 's,%%PREFIX%%,$(PREFIX),g' conf/rc.d/pagewise >$(DESTDIR)$(RC_D)/pagewise
	chmod 755 $(DESTDIR)$(RC_D)/pagewise
endif

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/sbin/pagewise \
	    $(DESTDIR)$(PREFIX)/libexec/pagewise-tool \
	    $(DESTDIR)$(LIBDIR)/libpagewise.* \
	    $(PC_DIR)/libpagewise.pc \
	    $(DESTDIR)$(PREFIX)/include/pagewise.h \
	    $(patsubst docs/man/%,$(SHARE)/man/man3/%,$(wildcard docs/man/*.3)) \
	    $(patsubst docs/man/%,$(SHARE)/man/man5/%,$(wildcard docs/man/*.5)) \
	    $(patsubst docs/man/%,$(SHARE)/man/man8/%,$(wildcard docs/man/*.8))
	rm -f $(BASH_DIR)/pagewise $(ZSH_DIR)/_pagewise $(FISH_DIR)/pagewise.fish
	rm -f $(DESTDIR)$(NGINX_MODULES)/$(notdir $(NGINX_MODULE))
	rm -rf $(SHARE)/pagewise $(RC_D:%=$(DESTDIR)%/pagewise)

clean:
	rm -rf build

help:
	@sed -n 's/^## //p' Makefile

.PHONY: check release dist deb test-deb test-fresh tested image all nginx-module soak-nginx asan tsan debug unit fault faults freebsd freebsd-all deps run test test-kernels test-all test-clients h2spec scan-tls soak lossless fuzz bench results bench-full bench-storm bench-hot bench-tls bench-h2 \
    bench-profile bench-peers fleet bench-nowait bench-folio bench-tools bench-ladders bench-admission lint lint-clang-format lint-clang-tidy lint-cppcheck \
    lint-mandoc lint-seam lint-guards lint-header lint-names lint-rooms lint-messages lint-abi lint-docs abi examples install uninstall clean help
.DELETE_ON_ERROR:

# There, other trees and whole systems stand.
OTHER_TREES = -path build/deb -o -path build/packages -o -path build/image
-include $(shell find build \( $(OTHER_TREES) \) -prune -o -name '*.d' -type f -print 2>/dev/null)
