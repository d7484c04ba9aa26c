# The laboratory.

# Without root it measures what it can, and says what it left out.
SCENARIOS_bench = all --quick
SCENARIOS_bench-full = all
SCENARIOS_bench-storm = storm
SCENARIOS_bench-hot = hot
SCENARIOS_bench-thesis = thesis $(if $(LONG),--long)
SCENARIOS_bench-tls = hot storm handshakes idle --quick \
    --set hot.cases=1K,16K,64K,1M,16M --set hot.seconds=4 $(if $(filter --path --path=% --peer --peer=%,$(ARGS)),,\
    --path nodiskio-tls --peer nginx-tls,h2o-tls,lighttpd-tls,caddy-tls)
SCENARIOS_bench-h2 = http2 streams resets idle --quick --set idle.protocol=http2
bench bench-full bench-storm bench-hot bench-thesis bench-tls bench-h2:
	@sh conf/install-deps.sh build bench
	@+$(SUBMAKE) all build/bench/admission $(TOOLS:%=build/bench/%) $(EXAMPLES:%=build/obj/examples/%)
	@bench/lab run $(SCENARIOS_$@) $(ARGS)

demo:
	@sh conf/install-deps.sh build demo
	@+$(SUBMAKE) all build/bench/probe build/bench/replay
	@$(if $(filter 0,$(shell id -u)),,$(shell command -v sudo)) bench/lab demo $(ARGS)

results bench-rows:
	@sh conf/install-deps.sh build bench nginx
	@+$(SUBMAKE) all nginx-module build/tests/slowfs build/bench/admission $(PROFILE) $(LADDERS) \
	    $(TOOLS:%=build/bench/%) $(EXAMPLES:%=build/obj/examples/%)
	@bench/lab $(@:bench-%=%) $(ARGS)

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
    build/bench/ladders/ring build/bench/ladders/gup
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

build/bench/calls: bench/calls.c build/libpagewise.so
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(STD) $(WARN) $(CFLAGS) $(LDFLAGS) -o $@ $< -Lbuild -lpagewise

bench-calls:
	@sh conf/install-deps.sh build profile
	@+$(SUBMAKE) all build/bench/calls build/bench/openat2.so
	@cd lib/bindings/rust && CARGO_TARGET_DIR=$(CURDIR)/build/cargo PAGEWISE_LIB_DIR=$(CURDIR)/build \
	    cargo build --quiet --release --locked --example calls
	@bench/lab calls $(ARGS)

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
