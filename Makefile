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
##   judges       suites that others wrote, a line each; NGINX_TESTS=DIR TLSFUZZER=DIR: these
##                checkouts too; ARGS="--page FILE": the table (15 minutes)
##   sim          library and server in a simulated world, from seeds: SEED=N repeats one (tests/sim/world.h)
##   soak         everything at once for SOAK_MINUTES, all bytes verified: build/soak/report.md
##   lossless     SIGHUP, SIGUSR2, SIGTERM every two seconds, while clients ask: none is lost
##   fuzz         each harness of tests/fuzz for a minute (clang's libFuzzer)
##   lint         clang-format, clang-tidy, cppcheck, mandoc, the pages of the manual; quiet when clean
##   keys         writes what repeats the keys of the configuration: manual, sample, help (conf/keys.py)
##   man          writes the manual pages of the library from its header (conf/man3.py)
##   metrics      writes into docs/reference/metrics.md what the server says of each metric
##   abi          writes lib/abi/, what the library promises, which lint compares: for a release
##   freebsd      builds for FreeBSD, on Linux: build/freebsd/pagewise (docs/guides/freebsd.md)
##   test-freebsd the unit tests, a server and clients on an emulated FreeBSD: IMAGE=FILE
##                (a quarter of an hour; without IMAGE it says what it needs)
##   asan, tsan   build/asan/pagewise, build/tsan/pagewise with sanitizers
##   faults       each call of the server fails at each place, in each way (Linux)
##   debug        build/debug/pagewise with what tests ask from inside
##                all, asan, tsan and debug only build: `make deps` before that
##   nginx-module build/nginx/ngx_http_pagewise_module.so (lib/nginx/README.md)
##   soak-nginx   that in nginx, with reloads, for SOAK_MINUTES
##   bench        every scenario of the laboratory, shortened (root, Linux)
##   bench-full   the same in full: hours; bench-storm: one scenario
##   bench-hot    against the peers and the limit, files in memory: 20 minutes
##   bench-thesis the load of the thesis; LONG=1: ten minutes for each server, on eight devices
##   bench-tls    the same over TLS: hot, storm, handshakes, idle connections; shortened
##   bench-h2     over HTTP/2: hot files, hot and cold streams, resets, idle connections; shortened
##   bench-profile  system calls, instructions, allocations of a request
##   results      docs/results.md and the pages behind it: every table measured from one commit,
##                an hour and a half; goes on where it was interrupted (root, Linux)
##   bench-rows   which figures are behind a peer's, in one table: a quarter of an hour
##   demo         the storm in 20 seconds, nginx and pagewise, drawn in the terminal (root, Linux)
##   bench-peers  install the servers that it compares with
##   fleet        HAProxy and four nodes in network namespaces: docs/guides/fleet.md (root, Linux)
##   bench-calls   a request in C and through the crate for Rust (cargo)
##   bench-ladders pipes, pages and rings, step by step (Linux)
##   bench-admission  cache policies, simulated: docs/admission.md (half a minute)
##   bench-tools  load generators, and a limit: build/bench/probe, slow, replay, idle,
##                handshake, h2storm, resets, limit
##   bench-nowait what asking for a page's residency costs (root, Linux)
##   bench-folio  what bringing in a window costs, page by page or as one
##   dist         build/dist/pagewise-VERSION.tar.gz of what is committed, its SBOM (SPDX), and the
##                distinfo of the port for FreeBSD
##   release      the signed tag vVERSION of what is committed
##   html         the whole manual as one page: build/html/manual.html
##   deb          Debian's packages of that: build/deb (conf/debian)
##   test-deb     installs, upgrades under load and removes them in fresh roots, and with systemd;
##                SUITES="bookworm trixie" ARGS="--tests 'tests/http tests/fault'": these instead
##   test-fresh   make run, make check and make test in bare roots of Debian 12 and 13: before a
##                release (2 hours)
##   image        an image for containers, built and tried without a registry: build/image/pagewise.tar
##   install, uninstall, clean, deps (only install what the build needs)
##   examples     build/obj/examples: servers on other event loops, as lib/examples has them
## Variables:
##   CC CFLAGS LDFLAGS PREFIX=/usr/local DESTDIR= WERROR=1 V=1 PYTHON BROTLI=no ZSTD=no
##   run:  DIR=conf/welcome PORT=8080 LISTEN=127.0.0.1 ARGS="more options"
##   test: PYTEST_ARGS="-k range" SANITIZERS="asan tsan": with the first of them
##         everything, with the second what is about the server; or one of them alone
##   sim:  SIM_SECONDS=60 of the processor, SIM_BUILD=obj (asan), ARGS="--first N": other seeds
##   soak: SOAK_MINUTES=30 SOAK_BUILD=obj (asan, tsan) ARGS="--seed 1 --tls --http2"
##   test-freebsd: KERNEL=FILE ARGS="--cpus 2 --only 'sink adopt'" FREEBSD_ROOT=DIR: another compiler
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
PKGS = libevent_core libevent_extra libnghttp2 libssl libcrypto $(PKGS_$(OS)) $(CONFINE_$(OS))
PKGS_linux = liburing
CONFINE_linux = libseccomp
PKG_CFLAGS = $(eval PKG_CFLAGS := $(call pkg,--cflags,$(PKGS)))$(PKG_CFLAGS)
# Of pagewise-tool alone.  "no" leaves a coding out.
BROTLI = yes
ZSTD = yes
LEFT_OUT = $(foreach coding,BROTLI ZSTD,$(if $(filter no,$($(coding))),$(coding)))
TOOL_PKGS = zlib $(if $(filter BROTLI,$(LEFT_OUT)),,libbrotlienc) $(if $(filter ZSTD,$(LEFT_OUT)),,libzstd) \
    libcrypto
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
    build/mime_table.c build/admin_page.c build/key_text.c
# About Linux: its list of active pages, io_uring, how attributes are set, large folios, capabilities, pipes of a size, direct reads, what is in memory, its /proc.
UNIT_NOT_freebsd = active async direct file_attribute file_copy filesystem folio ktls mapped memory_limit meter offset owner pins pipes reclaim residency share tcp_memory tier tier_fetch tier_offer
# About FreeBSD: its rights of descriptors, what its sockets count.
UNIT_NOT_linux = freebsd_rights freebsd_socket
UNIT_C := $(filter-out $(UNIT_NOT_$(OS):%=tests/unit/test_%.c),\
    $(wildcard tests/unit/test_*.c))
SANITIZERS = asan tsan
# With TSan only those that start threads, by what they call themselves or a header that they include.
UNIT_THREADS := $(filter $(UNIT_C),$(shell calls='pthread_create|thread_start|pool_create'; for depth in 1 2 3; do \
    calls="$$calls$$(grep -lE "$$calls" tests/unit/*.h | sed 's,.*/\(.*\),|"\1",' | tr -d '\n')"; done; \
    grep -lE "$$calls" tests/unit/test_*.c))
UNIT_OF = $(if $(filter tsan,$(1)),$(UNIT_THREADS),$(UNIT_C))
UNIT = $(foreach f,$(SANITIZERS),$(patsubst tests/unit/%.c,build/$(f)/unit/%,$(call UNIT_OF,$(f))))
FUZZ_C := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_C := $(filter-out tests/fuzz/fuzz_main.c,$(FUZZ_C))
FUZZ = $(if $(filter asan,$(SANITIZERS)),$(FUZZ_C:tests/fuzz/%.c=build/asan/fuzz/%))
FLAVOURS = obj asan tsan debug fuzz freebsd
# With -O1 a file compiles in two thirds of the time, but these warnings guess there; clang has others.
O1 = -O1 -Wno-unknown-warning-option -Wno-format-truncation -Wno-maybe-uninitialized
SANITIZE_asan = $(O1) -fsanitize=address,undefined -fno-sanitize-recover=all \
    -fno-omit-frame-pointer -fno-optimize-sibling-calls -DPW_DEBUG
# gcc's libubsan.so has 6 MB of variables, which LeakSanitizer reads at the end of each process.  At a fixed
# address the 3 MB of UBSan's own need no relocation at the start.
LINK_asan = $(eval LINK_asan := $(if $(findstring Free Software,$(shell $(CC) --version)),-static-libubsan -no-pie))$(LINK_asan)
# The debug build tries from inside what a sandbox should refuse: tests/inside/.
INSIDE_C = $(INSIDE_$(OS))
INSIDE_linux = $(wildcard tests/inside/*.c)
SANITIZE_debug = -DPW_DEBUG $(if $(INSIDE_C),-DPW_INSIDE)
SANITIZE_tsan = $(O1) -fsanitize=thread -fno-omit-frame-pointer -DPW_DEBUG
SANITIZE_fuzz = $(SANITIZE_asan) -fsanitize=fuzzer-no-link

all: build/pagewise build/pagewise-tool build/libpagewise.a build/libpagewise.so build/libpagewise.pc
asan: build/asan/pagewise build/asan/pagewise-tool
tsan: build/tsan/pagewise build/tsan/pagewise-tool
unit: $(UNIT) $(FUZZ)
debug: build/debug/pagewise build/debug/pagewise-tool
fault: build/fault/pagewise

%/server/tool/compress.o: STD += $(LEFT_OUT:%=-DNO_%)

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
	$$(call say,LD)$$(CC) $$(CFLAGS) $$(SANITIZE_$(1)) $$(LINK_$(1)) $$(LDFLAGS) -o $$@ \
	    $$^ $$(LIBS)
build/$(1)/pagewise-tool: $(TOOL_C:%.c=build/$(1)/%.o) build/$(1)/server.a \
    build/$(1)/libpagewise.a
	$$(call say,LD)$$(CC) $$(CFLAGS) $$(SANITIZE_$(1)) $$(LINK_$(1)) $$(LDFLAGS) -o $$@ \
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

# Made by conf/keys.py from docs/reference, and committed: a build needs no Python.
build/key_text.c: build/%.c: server/conf/key_text.txt
	@mkdir -p $(@D)
	$(call string)

# Unit tests run with sanitizers; those of the debug build, on other kernels.  What a test
# defines as __wrap_X is called instead of X.  A test's own code need not be fast: with -O0 it compiles in half
# of the time, and gold links in a third.
GOLD = $(eval GOLD := $(if $(shell command -v ld.gold),-fuse-ld=gold))$(GOLD)
define unit
build/$(1)/tests/unit/%.o: SANITIZE_$(1) += -O0 -U_FORTIFY_SOURCE
.PRECIOUS: build/$(1)/tests/unit/%.o
build/$(1)/unit/%: build/$(1)/tests/unit/%.o build/$(1)/server.a build/$(1)/libpagewise.a
	@mkdir -p $$(@D)
	$$(call say,LD)$$(CC) $$(CFLAGS) $$(SANITIZE_$(1)) $$(GOLD) $$(LDFLAGS) -o $$@ \
	    $$$$(sed -n 's/^__wrap_\([a-z0-9_]*\)(.*/-Wl,--wrap=\1/p' tests/unit/$$*.c) \
	    $$(filter %.o %.a,$$^) $$(LIBS) $$(call pkg,--libs,cmocka)
endef
$(foreach f,asan tsan debug,$(eval $(call unit,$(f))))

# A harness over the inputs that are there, and with a fuzzer that makes more.
build/asan/tests/fuzz/%.o: SANITIZE_asan += -O0 -U_FORTIFY_SOURCE
.PRECIOUS: build/asan/tests/fuzz/%.o
build/asan/fuzz/%: build/asan/tests/fuzz/%.o build/asan/tests/fuzz/fuzz_main.o build/asan/server.a \
    build/asan/libpagewise.a
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(CFLAGS) $(SANITIZE_asan) $(GOLD) $(LDFLAGS) -o $@ \
	    $(filter %.o %.a,$^) $(LIBS)

FUZZ_CC = clang
build/fuzz/%: override CC = $(FUZZ_CC)
build/fuzz/fuzz_%: tests/fuzz/fuzz_%.c build/fuzz/server.a \
    build/fuzz/libpagewise.a
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE) $(SANITIZE_asan) -fsanitize=fuzzer $(LDFLAGS) \
	    -o $@ $(filter %.c %.a,$^) $(LIBS)

# The server with sanitizers once more, linked so that each call which a test
# may let fail goes through tests/fault/inject*.c, which tell the places of calls from the start of
# the program.
INJECT_C = $(wildcard tests/fault/inject*.c)
INJECT_O = $(INJECT_C:%.c=build/asan/%.o)
build/fault/pagewise: build/asan/server/main.o build/asan/server.a \
    build/asan/libpagewise.a $(INJECT_O)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(CFLAGS) $(SANITIZE_asan) $(filter-out -no-pie,$(LINK_asan)) $(LDFLAGS) -o $@ \
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
EXAMPLES_linux = epoll libuv io_uring fd_cache h2o_like
EXAMPLES_freebsd = kqueue fd_cache
EXAMPLES = $(EXAMPLES_$(OS))
EXAMPLE_PKGS = $(if $(findstring libuv,$@),libuv) $(if $(findstring h2o_like,$@),libnghttp2 libssl libcrypto) $(PKGS_$(OS))
# An event loop, and what serves clients; fd_cache and h2o_like serve them otherwise, in the loop of another example.
EXAMPLE_C = $(addprefix lib/examples/,server.c \
    $(if $(filter %/fd_cache,$@),$(firstword $(EXAMPLES)).c fd_client.c,$(if $(filter %/h2o_like,$@),$(firstword $(EXAMPLES)).c fd_cache.c,client.c)))
define example
build/$(1)/examples/%: lib/examples/%.c $(wildcard lib/examples/*.[ch]) \
    lib/pagewise.h build/$(1)/libpagewise.a
	@mkdir -p $$(@D)
	$$(call say,CC)$$(CC) $$(STD) -Ilib $$(WARN) $$(CFLAGS) $$(SANITIZE_$(1)) $$(LDFLAGS) -o $$@ \
	    $$< $$(EXAMPLE_C) $$(filter %.a,$$^) $$(if $$(PKGS_$$(OS)),$$(call pkg,--cflags --libs,$$(EXAMPLE_PKGS))) -pthread
endef
$(foreach f,obj asan freebsd,$(eval $(call example,$(f))))
examples: $(EXAMPLES:%=build/obj/examples/%)

include mk/freebsd.mk

# These start where nothing is installed: hence a second make for the rest.
JOBS = $(shell getconf _NPROCESSORS_ONLN)
SUBMAKE = $(MAKE) $(if $(V),,-s) \
    $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))

deps:
	@sh conf/install-deps.sh build

# Root serves as nobody, but what nobody may read (umask 077) as itself.
OTHERS_READ = [ -n "$$(find -H "$(DIR)" -prune -perm -005)" ]
run: deps
	@+$(SUBMAKE) all
	@user=; [ "$$(id -u)" -ne 0 ] || $(OTHERS_READ) || user="--user root"; \
	exec build/pagewise --root "$(DIR)" --listen "$(LISTEN):$(PORT)" \
	    --autoindex $$user $(ARGS)

include mk/test.mk
include mk/bench.mk
include mk/lint.mk
include mk/dist.mk

clean:
	rm -rf build

help:
	@sed -n 's/^## //p' Makefile

.PHONY: check release dist html deb test-deb test-fresh tested image all nginx-module soak-nginx asan tsan debug unit fault faults freebsd freebsd-all freebsd-tests test-freebsd deps run test test-kernels test-all test-clients h2spec scan-tls judges soak lossless fuzz bench demo results bench-rows bench-full bench-storm bench-hot bench-thesis bench-tls bench-h2 \
    bench-profile bench-peers fleet bench-nowait bench-folio bench-tools bench-calls bench-ladders bench-admission lint lint-clang-format lint-clang-tidy lint-cppcheck \
    lint-mandoc lint-seam lint-guards lint-header lint-names lint-comments lint-commits lint-programs lint-rooms lint-messages lint-keys lint-man lint-abi lint-docs keys man metrics abi examples install uninstall clean help
.DELETE_ON_ERROR:

# There, other trees and whole systems stand.
OTHER_TREES = -path build/deb -o -path build/packages -o -path build/image -o -path build/roots
-include $(shell find build \( $(OTHER_TREES) \) -prune -o -name '*.d' -type f -print 2>/dev/null)
