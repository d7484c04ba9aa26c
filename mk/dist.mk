# Archives, packages, installation.

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

# One page, for a browser.
html:
	@sh conf/install-deps.sh html
	@$(PYTHON) conf/manual.py build/html/manual.html
	@echo build/html/manual.html

DEB_TREE = build/deb/pagewise-$(VERSION)
deb:
	@sh conf/install-deps.sh build nginx deb
	@+$(SUBMAKE) dist
	@rm -rf $(DEB_TREE) build/deb/pagewise_* build/deb/*.deb && mkdir -p build/deb && cp $(DIST) build/deb/pagewise_$(VERSION).orig.tar.gz
	@tar -xzf $(DIST) -C build/deb && cp -R $(DEB_TREE)/conf/debian $(DEB_TREE)/debian
	@cd $(DEB_TREE) && dpkg-buildpackage --no-sign $(DEB_ARGS) >../build.log 2>&1 || \
	    { tail -30 ../build.log; exit 1; }
	@lintian --fail-on error,warning build/deb/pagewise_$(VERSION)-*.changes
	@cp conf/container.conf build/deb
	@ls build/deb/*.deb

SUITES = bookworm trixie
test-deb:
	@sh conf/install-deps.sh roots
	@+$(SUBMAKE) dist
	@$(PYTHON) tests/packages/run --dist $(DIST) $(ARGS) $(SUITES)

# The README's two commands where nothing is installed, and every test.
test-fresh:
	@sh conf/install-deps.sh roots
	@for suite in $(SUITES); do \
		sh conf/bare-root.sh $$suite "make run" "make check" "make test" || exit 1; \
	done

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
# `make -j nginx-module install` builds the module first.
install: all $(filter nginx-module,$(MAKECMDGOALS))
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/libexec $(DESTDIR)$(LIBDIR) \
	    $(PC_DIR) $(DESTDIR)$(PREFIX)/include $(SHARE)/man/man3 $(SHARE)/man/man5 \
	    $(SHARE)/man/man8 \
	    $(SHARE)/pagewise
	install -m 755 build/pagewise $(DESTDIR)$(PREFIX)/sbin
	install -m 755 build/pagewise-tool $(DESTDIR)$(PREFIX)/libexec
	install -m 644 build/libpagewise.a $(DESTDIR)$(LIBDIR)
	install -m 755 build/$(SONAME) $(DESTDIR)$(LIBDIR)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libpagewise.so
	[ -n "$(DESTDIR)" ] || [ ! -w /etc/ld.so.cache ] || PATH=$$PATH:/sbin ldconfig
	sed -e 's,^prefix=.*,prefix=$(PREFIX),' -e 's,^libdir=.*,libdir=$(LIBDIR),' build/libpagewise.pc >$(PC_DIR)/libpagewise.pc
	chmod 644 $(PC_DIR)/libpagewise.pc
	install -m 644 lib/pagewise.h lib/pagewise.hpp $(DESTDIR)$(PREFIX)/include
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
	umask 022; cp -R conf/welcome conf/haproxy conf/prometheus conf/grafana $(INIT_$(OS)) $(SHARE)/pagewise
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
	    $(DESTDIR)$(PREFIX)/include/pagewise.h $(DESTDIR)$(PREFIX)/include/pagewise.hpp \
	    $(patsubst docs/man/%,$(SHARE)/man/man3/%,$(wildcard docs/man/*.3)) \
	    $(patsubst docs/man/%,$(SHARE)/man/man5/%,$(wildcard docs/man/*.5)) \
	    $(patsubst docs/man/%,$(SHARE)/man/man8/%,$(wildcard docs/man/*.8))
	rm -f $(BASH_DIR)/pagewise $(ZSH_DIR)/_pagewise $(FISH_DIR)/pagewise.fish
	rm -f $(DESTDIR)$(NGINX_MODULES)/$(notdir $(NGINX_MODULE))
	rm -rf $(SHARE)/pagewise $(RC_D:%=$(DESTDIR)%/pagewise)
