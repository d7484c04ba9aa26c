/*
 * server/conf/conf.h on any text: what is refused is said, with file and line; what is
 * accepted is whole; comments before it change nothing.
 * Input: the file.
 */
#include <ctype.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "server/conf/conf.h"

static char path[32];

/* In memory: a file on a disk would cost more than all the rest. */
static void
write_file(struct str text)
{
	static int fd = -1;

	if (fd == -1) {
		fd = memfd_create("conf", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		/* So that nothing comes from outside. */
		clearenv();
		setenv("SET", "a\"b\\n${SET}", 1);
	}
	CHECK(fd != -1 && ftruncate(fd, 0) == 0);
	CHECK(pwrite(fd, text.s_ptr, text.s_len, 0) == (ssize_t)text.s_len);
}

/* What is printed meanwhile is a message; the caller frees it. */
static enum conf_action
load(struct conf **conf, char **message)
{
	char name[] = "pagewise", option[] = "-c";
	char *argv[] = {name, option, path, NULL};
	enum conf_action action;
	FILE *before = stderr;
	size_t len;

	stderr = open_memstream(message, &len);
	CHECK(stderr != NULL);
	action = conf_load(3, argv, NULL, conf);
	fclose(stderr);
	stderr = before;
	return action;
}

/* "pagewise: FILE:LINE: KEY: cause", or one of those that are about the whole: one line. */
static void
check_line(const char *message, struct str in)
{
	/* One more: a newline is added. */
	size_t len = strlen(path), lines = 2, i;
	const char *p = message;
	unsigned long line;
	char *end;

	for (i = 0; i < in.s_len; i++)
		lines += in.s_ptr[i] == '\n';
	CHECK(strncmp(p, "pagewise: ", 10) == 0);
	p += 10;
	for (i = 0; p[i] >= 0x20 || p[i] < 0; i++)
		CHECK(p[i] != 0x7f);
	CHECK(i > 0 && p[i] == '\n');
	if (strncmp(p, "admin: ", 7) == 0 || strncmp(p, "site \"", 6) == 0)
		return;
	CHECK(strncmp(p, path, len) == 0 && p[len] == ':');
	p += len + 1;
	if (strncmp(p, " is not a text file: ", 21) == 0) {
		CHECK(memchr(in.s_ptr, '\0', in.s_len) != NULL);
		return;
	}
	if (strncmp(p, " no site is configured: ", 24) == 0)
		return;
	line = strtoul(p, &end, 10);
	CHECK(end > p && line >= 1 && line <= lines);
	CHECK(strncmp(end, ": ", 2) == 0 && end[2] != '\n');
}

static void
check_message(const char *message, struct str in)
{
	unsigned n = 0;

	for (; *message != '\0'; message = strchr(message, '\n') + 1, n++)
		check_line(message, in);
	CHECK(n >= 1 && n <= 10);
}

static void
check_settings(const struct settings *set)
{
	CHECK(set->set_send_path != NULL);
	CHECK(set->set_readahead == PW_READAHEAD_NONE ||
	      set->set_readahead <= 64 << 20);
}

static void
check_site(const struct conf *conf, const struct site *site)
{
	const struct location *loc = site->site_locations;

	CHECK(site->site_root != NULL && site->site_name[0] != '\0');
	check_settings(&site->site_set);
	for (size_t i = 0; i < site->site_nlocations; i++) {
		CHECK(loc[i].loc_path[0] == '/' ||
		      loc[i].loc_kind == LOCATION_GLOB);
		CHECK(i == 0 || loc[i].loc_kind > loc[i - 1].loc_kind ||
		      (loc[i].loc_kind == loc[i - 1].loc_kind &&
			  (loc[i].loc_kind != LOCATION_PREFIX ||
			      loc[i].loc_len <= loc[i - 1].loc_len)));
		CHECK(loc[i].loc_set.set_root < conf->conf_nroots);
		check_settings(&loc[i].loc_set);
	}
	for (size_t i = 0;
	     site->site_names != NULL && site->site_names[i] != NULL; i++)
		CHECK(conf_site(conf, site->site_names[i],
			  strlen(site->site_names[i])) == site);
}

static void
check_conf(const struct conf *conf)
{
	CHECK(conf->conf_nlisten > 0 && conf->conf_nsites > 0);
	CHECK(conf->conf_workers >= 1 && conf->conf_workers <= 1024);
	CHECK(conf->conf_threads >= 1 && conf->conf_threads <= 256);
	CHECK(conf->conf_max_head >= 1024 && conf->conf_max_head <= 1 << 20);
	CHECK(conf->conf_max_target >= 64 && conf->conf_max_target <= 1 << 20);
	CHECK(conf->conf_max_ranges >= 1 && conf->conf_max_ranges <= 1024);
	CHECK(conf->conf_disk_timeout >= 1 && conf->conf_mime != NULL);
	for (size_t i = 0; i < conf->conf_nsites; i++)
		check_site(conf, &conf->conf_sites[i]);
}

/* Would be opened, and may be anything. */
static bool
names_files(struct str in)
{
	return memmem(in.s_ptr, in.s_len, "mime_types", 10) != NULL ||
	       memmem(in.s_ptr, in.s_len, "include", 7) != NULL ||
	       memmem(in.s_ptr, in.s_len, "htpasswd", 8) != NULL ||
	       memmem(in.s_ptr, in.s_len, "signed_links", 12) != NULL;
}

/* One line of messages and its like three lines later; of numbers behind its own some are lines too. */
static void
check_shifted_line(const char **earlier, const char **later)
{
	size_t len = strlen("pagewise: ") + strlen(path) + 1;
	const char *p = *earlier, *q = *later;
	bool first = strncmp(p, q, len) == 0 && isdigit((unsigned char)p[len]);
	unsigned long before, after;
	char *end;

	if (first) {
		p += len;
		q += len;
	}
	do {
		if (!isdigit((unsigned char)*p)) {
			CHECK(*p++ == *q++);
			continue;
		}
		CHECK(isdigit((unsigned char)*q));
		before = strtoul(p, &end, 10);
		p = end;
		after = strtoul(q, &end, 10);
		q = end;
		CHECK(after == before + 3 || (!first && after == before));
		first = false;
	} while (p[-1] != '\n');
	*earlier = p;
	*later = q;
}

/* A byte order mark is none behind other lines: it is left out there. */
static struct str
without_mark(struct str in)
{
	if (in.s_len >= 3 && memcmp(in.s_ptr, "\xef\xbb\xbf", 3) == 0)
		return (struct str){in.s_ptr + 3, in.s_len - 3};
	return in;
}

/* Three lines later everything is the same, three lines later. */
static void
check_shifted(struct str in, enum conf_action action, const char *message)
{
	static const char before[] = "/*\n\"{*/ # '\n//\n";
	char *text = malloc(sizeof(before) + in.s_len), *later, *p;
	const char *at;
	struct conf *conf;

	CHECK(text != NULL);
	in = without_mark(in);
	p = stpcpy(text, before);
	p = mempcpy(p, in.s_ptr, in.s_len);
	write_file((struct str){text, (size_t)(p - text)});
	CHECK(load(&conf, &later) == action);
	conf_destroy(&conf);
	for (at = later; *message != '\0';)
		check_shifted_line(&message, &at);
	CHECK(*at == '\0');
	free(later);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	struct conf *conf;
	enum conf_action action;
	char *message;

	if (names_files(in) || size > 16384)
		return 0;
	write_file(in);
	action = load(&conf, &message);
	CHECK(action == CONF_RUN || action == CONF_EXIT_ERROR);
	if (action == CONF_RUN) {
		CHECK(message[0] == '\0');
		check_conf(conf);
		conf_destroy(&conf);
	} else {
		CHECK(conf == NULL);
		check_message(message, in);
	}
	check_shifted(in, action, message);
	free(message);
	return 0;
}
