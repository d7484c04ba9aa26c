# The build for FreeBSD, on Linux.

# For FreeBSD on Linux.  What is imported shows that the program is what it should be.
FREEBSD_NEEDS = kqueue kevent sendfile cap_enter aio_read
FREEBSD_LIBS = -levent_extra -levent_core -lnghttp2 -lssl -lcrypto
# pagewise-tool is only compiled, with the headers of this machine: its libraries are not there.
freebsd-all: build/freebsd/pagewise build/freebsd/libpagewise.so \
    $(EXAMPLES_freebsd:%=build/freebsd/examples/%) \
    $(UNIT_C:%.c=build/freebsd/%.o) $(TOOL_C:%.c=build/freebsd/%.o)
build/freebsd/include/xxhash.h:
	@mkdir -p $(@D)
	@cp -R /usr/include/brotli /usr/include/zstd*.h \
	    $(wildcard /usr/include/zconf.h /usr/include/*-*/zconf.h) $(@D)
	@cp /usr/include/zlib.h $(@D)
	@cp /usr/include/xxhash.h $@
freebsd:
	@sh conf/install-deps.sh cross
	@+$(SUBMAKE) build/freebsd/include/xxhash.h
	@+root=$$(sh conf/freebsd-sysroot.sh) && $(SUBMAKE) OS=freebsd WERROR=1 \
	    CC=$$root/bin/cc AR=$$root/bin/ar PKG_CFLAGS="-I$$root/include -Ibuild/freebsd/include" \
	    PKG_LIBS="-L$$root/lib $(FREEBSD_LIBS)" \
	    freebsd-all
	@nm -D build/freebsd/pagewise >build/freebsd/imports; \
	for call in $(FREEBSD_NEEDS); do \
		grep -q "U $$call\(@\|$$\)" build/freebsd/imports || \
		    { echo "build/freebsd/pagewise does not call $$call" >&2; exit 1; }; \
	done; file -b build/freebsd/pagewise | sed 's/, BuildID.*//'
