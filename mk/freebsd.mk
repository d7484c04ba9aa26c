# The build for FreeBSD on Linux, and its tests on an emulated machine.

# What is imported shows that the program is what it should be.
FREEBSD_NEEDS = kqueue kevent sendfile cap_enter aio_read
FREEBSD_LIBS = -levent_extra -levent_core -lnghttp2 -lssl -lcrypto
FREEBSD_UNIT = $(patsubst tests/unit/%.c,build/freebsd/unit/%,$(filter-out \
    $(UNIT_NOT_freebsd:%=tests/unit/test_%.c),$(wildcard tests/unit/test_*.c)))
# Another compiler and other libraries, laid out as conf/freebsd-sysroot.sh does it.
FREEBSD_ROOT =
FREEBSD_MAKE = root=$(or $(FREEBSD_ROOT),$$(sh conf/freebsd-sysroot.sh)) && $(SUBMAKE) OS=freebsd WERROR=1 \
    CC=$$root/bin/cc AR=$$root/bin/ar PKG_CFLAGS="-I$$root/include -Ibuild/freebsd/include" \
    PKG_LIBS="-L$$root/lib $(FREEBSD_LIBS)"
# pagewise-tool is only compiled, with the headers of this machine: its libraries are not there.
freebsd-all: build/freebsd/libpagewise.so $(EXAMPLES_freebsd:%=build/freebsd/examples/%) \
    $(TOOL_C:%.c=build/freebsd/%.o) freebsd-tests
freebsd-tests: build/freebsd/pagewise build/freebsd/guest $(FREEBSD_UNIT)
$(FREEBSD_UNIT): build/freebsd/unit/%: build/freebsd/tests/unit/%.o build/freebsd/server.a \
    build/freebsd/libpagewise.a
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ \
	    $$(sed -n 's/^__wrap_\([a-z0-9_]*\)(.*/-Wl,--wrap=\1/p' tests/unit/$*.c) $^ $(LIBS) -lcmocka
build/freebsd/guest: $(patsubst %.c,build/freebsd/%.o,$(wildcard tests/freebsd/*.c))
	$(call say,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
build/freebsd/include/xxhash.h:
	@mkdir -p $(@D)
	@cp -R /usr/include/brotli /usr/include/zstd*.h \
	    $(wildcard /usr/include/zconf.h /usr/include/*-*/zconf.h) $(@D)
	@cp /usr/include/zlib.h $(@D)
	@cp /usr/include/xxhash.h $@
freebsd:
	@sh conf/install-deps.sh cross
	@+$(SUBMAKE) build/freebsd/include/xxhash.h
	@+$(FREEBSD_MAKE) freebsd-all
	@nm -D build/freebsd/pagewise >build/freebsd/imports; \
	for call in $(FREEBSD_NEEDS); do \
		grep -q "U $$call\(@\|$$\)" build/freebsd/imports || \
		    { echo "build/freebsd/pagewise does not call $$call" >&2; exit 1; }; \
	done; file -b build/freebsd/pagewise | sed 's/, BuildID.*//'

# Says what it needs if there is no image.
IMAGE =
KERNEL =
test-freebsd:
	@[ -n "$(IMAGE)" ] || exec $(PYTHON) tests/freebsd/run build/freebsd
	@sh conf/install-deps.sh cross freebsd
	@+$(SUBMAKE) build/freebsd/include/xxhash.h
	@+$(FREEBSD_MAKE) freebsd-tests
	@exec $(PYTHON) tests/freebsd/run --image "$(IMAGE)" $(if $(KERNEL),--kernel "$(KERNEL)") \
	    $(ARGS) build/freebsd $(FREEBSD_UNIT)
