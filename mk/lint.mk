# What is checked in the sources.

C_EXAMPLES = $(wildcard lib/examples/*.[ch] lib/examples/man/*.c)
C_PRODUCT = $(filter-out $(C_EXAMPLES) lib/nginx/%,$(wildcard lib/*.[ch] lib/*/*.[ch] server/*.[ch] server/*/*.[ch]))
C_ALL = $(C_PRODUCT) $(C_EXAMPLES) $(wildcard tests/*/*.[ch])
lint:
	@sh conf/install-deps.sh build test lint
	@+$(SUBMAKE) lint-clang-format lint-clang-tidy lint-cppcheck lint-mandoc lint-seam \
	    lint-guards lint-header lint-names lint-comments lint-commits lint-programs lint-rooms lint-messages lint-keys lint-man lint-abi lint-docs

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

# A comment names its actor, and has none of the words that hide it.
lint-comments:
	@$(PYTHON) tests/lint_comments

# A commit's subject is `area: verb object`, and its body says why.
lint-commits:
	@$(PYTHON) tests/lint_commits

# A test names what it calls beyond the programs that its set installs.
lint-programs:
	@$(PYTHON) tests/lint_programs

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

# What repeats a key's text is made from its row and its section: conf/keys.py has the list.
keys: build/pagewise
	@sh conf/install-deps.sh html
	@$(PYTHON) conf/keys.py build/pagewise
lint-keys: build/pagewise
	@$(PYTHON) conf/keys.py --check build/pagewise

# The library's header is the source of its manual pages: conf/man3.py.
man:
	@$(PYTHON) conf/man3.py
lint-man:
	@$(PYTHON) conf/man3.py --check

# A test checks that the page is current.
metrics: build/pagewise
	@$(PYTHON) conf/metrics.py build/pagewise

# Links, lengths, spelling: the file says what.
lint-docs:
	@$(PYTHON) tests/lint_docs

# Each version breaks some lines elsewhere; the tree has those of Debian 12's.
FORMAT_VERSION = 14
lint-clang-format:
	@if clang-format --version | grep -q 'version $(FORMAT_VERSION)\.'; then \
		clang-format --dry-run --Werror $(C_ALL); \
	else \
		echo "pagewise: the format is not checked: that needs clang-format $(FORMAT_VERSION)"; \
	fi

lint-clang-tidy:
	@$(PYTHON) tests/lint_tidy $(LIB_C) $(filter server/%,$(SERVER_C)) $(TOOL_C) server/main.c -- $(STD) $(PKG_CFLAGS)

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
