/*
 * checks: a server on FreeBSD, and its clients.
 *
 * Below data/ are hot.txt, sized/N and below/N of N bytes, and 384 KiB each in cold/, keep/, drop/,
 * reload/, upgrade/, tls12/, tls13/, h2/ and indirect/, where 24 and 25 are larger; and broken/ (run).
 * data/null is a nullfs of data/below, data/refused one of data/broken, data/tmpfs a tmpfs, and data/zfs
 * is for a ZFS pool.  After a boot none of the files is in memory.
 */
#include <sys/param.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/freebsd/churn.h"
#include "tests/freebsd/crowd.h"
#include "tests/freebsd/evict.h"
#include "tests/freebsd/guest.h"
#include "tests/freebsd/pool.h"
#include "tests/freebsd/watch.h"

#define START_SECONDS	 60
#define CHANGE_SECONDS	 60
#define CLIENT_SECONDS	 300
#define LOG_SECONDS	 10
#define CHANGE_CLIENTS	 8
#define INDIRECT_CLIENTS 25
#define KEEP_CLIENTS	 8
#define DROP_CLIENTS	 65 /* more calls than may be in flight */
#define EVICT_SECONDS	 10
#define SECURE_CLIENTS	 16
#define POOL_CLIENTS	 48
#define BROKEN_CLIENTS	 6
#define BROKEN_ONCE \
	3 /* file of which a block fails once; blocks of those before it always fail */
#define REFUSED_RANGE \
	"458752-" /* of broken/6: a block that fails, behind those whose addresses are in the inode */
#define PING_MOST \
	1.0 /* seconds; without limits a cached file waited for 40 s */
#define ACCESS_LOG "tmp/access.log"
#define WORKER	   "pw-worker0"

static pid_t master;

static bool
serves(void)
{
	const char *const argv[] = {"./pagewise", "-c", "pagewise.conf", NULL};
	struct http ht;
	bool yes;

	master = guest_start(argv, SERVER_LOG);
	if (!http_open(&ht, START_SECONDS))
		return false;
	http_ask(&ht, "/hot.txt", NULL);
	http_await(&ht, START_SECONDS);
	yes = http_is_file(&ht, 200, "data/hot.txt", 0, ht.ht_length);
	http_close(&ht);
	return yes && ht.ht_length > 0;
}

static bool
is_confined(void)
{
	pid_t server = watch_server(master);
	int seen, wrong;

	if (server == 0 || !watch_is_confined(server)) {
		printf("# process %d is not in capability mode\n", (int)server);
		return false;
	}
	wrong = watch_rights(server, &seen);
	printf("# %d of %d descriptors have a right that is not needed\n",
	    wrong, seen);
	return wrong == 0 && seen > 0;
}

/* A file whose name is its size. */
struct sized {
	const char *sz_dir;
	off_t sz_size;
	struct http sz_http;
	unsigned sz_asked, sz_wrong;
};

static bool
is_exact(struct sized *sz, const char *range, off_t off, off_t len)
{
	struct http *ht = &sz->sz_http;
	char path[64], file[64];

	sz->sz_asked++;
	snprintf(
	    path, sizeof(path), "/%s/%lld", sz->sz_dir, (long long)sz->sz_size);
	snprintf(file, sizeof(file), "data%s", path);
	if (ht->ht_sock == -1 && !http_open(ht, 5))
		return false;
	http_ask(ht, path, range);
	http_await(ht, CLIENT_SECONDS);
	if (http_is_file(ht, range == NULL ? 200 : 206, file, off, len))
		return true;
	printf("# %s, range %s: status %d, %lld of %lld bytes\n", path,
	    range == NULL ? "none" : range, ht->ht_status,
	    (long long)ht->ht_got, (long long)len);
	http_close(ht);
	return false;
}

/* Requests the whole file, and five ranges of it. */
static void
ask_sized(struct sized *sz)
{
	off_t size = sz->sz_size, last;
	const off_t ranges[][2] = {{0, 0}, {size / 2, size - 1},
	    {size - 1, size + 10}, {size / 3, size / 3 + size / 4},
	    {size - (size < 1000 ? size : 1000), size - 1}};
	char text[64];

	sz->sz_wrong += !is_exact(sz, NULL, 0, size);
	for (size_t i = 0; size > 0 && i < nitems(ranges); i++) {
		last = ranges[i][1] < size ? ranges[i][1] : size - 1;
		snprintf(text, sizeof(text), "%lld-%lld",
		    (long long)ranges[i][0], (long long)ranges[i][1]);
		sz->sz_wrong +=
		    !is_exact(sz, text, ranges[i][0], last - ranges[i][0] + 1);
	}
}

static bool
all_are_exact(const char *dir)
{
	struct sized sz = {.sz_dir = dir, .sz_http = {.ht_sock = -1}};
	char path[64];
	const struct dirent *entry;
	DIR *list;

	snprintf(path, sizeof(path), "data/%s", dir);
	list = opendir(path);
	while (list != NULL && (entry = readdir(list)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		sz.sz_size = strtoll(entry->d_name, NULL, 10);
		ask_sized(&sz);
	}
	if (list != NULL)
		closedir(list);
	http_close(&sz.sz_http);
	printf("# %u of %u responses are wrong\n", sz.sz_wrong, sz.sz_asked);
	return sz.sz_wrong == 0 && sz.sz_asked > 0;
}

static bool
sizes_and_ranges_are_exact(void)
{
	return all_are_exact("sized");
}

static bool
is_mounted(const char *path, const char *type)
{
	struct statfs sf;

	if (statfs(path, &sf) == 0 && strcmp(sf.f_fstypename, type) == 0)
		return true;
	printf("# there is no %s at %s\n", type, path);
	return false;
}

/* Waits for a line, since a thread of its own writes the log. */
static bool
is_in_log(const char *log, const char *text)
{
	double end = http_now() + LOG_SECONDS;

	while (guest_count(log, "", text) == 0) {
		if (http_now() > end)
			return false;
		usleep(100000);
	}
	return true;
}

/* As of the file system below. */
static bool
files_of_nullfs_are_exact(void)
{
	return is_mounted("data/null", "nullfs") && all_are_exact("null") &&
	       is_in_log(SERVER_LOG, "(nullfs): residency: no check is needed");
}

static bool
copy_file(const char *from, const char *to)
{
	static char data[64 << 10];
	int in = open(from, O_RDONLY | O_CLOEXEC),
	    out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	ssize_t n = -1;

	while (in != -1 && out != -1 && (n = read(in, data, sizeof(data))) > 0)
		if (write(out, data, (size_t)n) != n)
			break;
	close(in);
	close(out);
	return n == 0;
}

static bool
copy_sized(const char *to_dir)
{
	static const char *const sizes[] = {"1", "4097", "393217", "1048577"};
	char from[64], to[64];

	for (size_t i = 0; i < nitems(sizes); i++) {
		snprintf(from, sizeof(from), "data/sized/%s", sizes[i]);
		snprintf(to, sizeof(to), "%s/%s", to_dir, sizes[i]);
		if (!copy_file(from, to))
			return false;
	}
	return true;
}

static bool
files_of_tmpfs_are_exact(void)
{
	return is_mounted("data/tmpfs", "tmpfs") && copy_sized("data/tmpfs") &&
	       all_are_exact("tmpfs");
}

static const struct {
	enum http_kind kind;
	const char *name, *dir;
} secure[] = {{HTTP_TLS12, "TLS 1.2", "tls12"},
    {HTTP_TLS13, "TLS 1.3", "tls13"}, {HTTP_H2, "HTTP/2", "h2"}};

static bool
encrypted_is_exact(void)
{
	bool yes = true;

	for (size_t i = 0; i < nitems(secure); i++) {
		printf("# %s\n", secure[i].name);
		http_use(secure[i].kind);
		yes = all_are_exact("sized") && yes;
	}
	http_use(HTTP_PLAIN);
	return yes;
}

/* -------------------------------------------------------------------- clients */

static struct crowd crowd;

/*
 * Counts the samples in which the worker slept elsewhere than in its poll (kqread) and for its own locks
 * (umtxn): perhaps for one of the buffers that reads need (zonelimi), a block (biord), the reads of a
 * call that failed (sferrio), a vnode, or ZFS (zio->io_, db->db_c, lr->lr_r).
 */
static unsigned
count_waits(void)
{
	return watch_count(WORKER, NULL) - watch_count(WORKER, WATCH_RUNS) -
	       watch_count(WORKER, "kqread") - watch_count(WORKER, "umtxn");
}

/* Downloads n files while a cached one is requested again and again.  Returns true if the worker never waited. */
static bool
worker_is_awake(const char *dir, unsigned n)
{
	double begun = http_now();
	unsigned slept;

	if (!crowd_begin(&crowd, watch_server(master), dir, n))
		return false;
	crowd_run(&crowd, CLIENT_SECONDS, OFF_MAX);
	printf("# %u clients in %.1f s; %u pings, the longest took %.0f ms\n",
	    crowd.cr_n, http_now() - begun, crowd.cr_pings,
	    crowd.cr_worst * 1000);
	watch_print();
	slept = count_waits();
	printf("# the worker waited in %u of %u samples\n", slept,
	    watch_count(WORKER, NULL));
	return slept == 0 && watch_count(WORKER, NULL) > 0 &&
	       crowd.cr_pings > 0;
}

/* Returns true if the cached file did not wait either. */
static bool
worker_never_sleeps(const char *dir, unsigned n)
{
	return worker_is_awake(dir, n) && crowd.cr_worst < PING_MOST;
}

/* Closes the connections.  Returns true if every response was exact. */
static bool
responses_are_exact(const char *dir)
{
	unsigned wrong = crowd_end(&crowd, dir);

	printf("# %u of %u responses are wrong\n", wrong, crowd.cr_n);
	return wrong == 0 && crowd.cr_n > 0;
}

static bool
worker_never_waits(const char *dir, unsigned n)
{
	bool yes = worker_never_sleeps(dir, n);

	return responses_are_exact(dir) && yes;
}

static bool
cold_clients_delay_no_other(void)
{
	return worker_never_waits("cold", CROWD_MOST);
}

/* Downloads the files below the directory that are for each protocol. */
static bool
encrypted_never_waits(const char *below)
{
	char dir[32];
	bool yes = true;

	for (size_t i = 0; i < nitems(secure); i++) {
		printf("# %s\n", secure[i].name);
		http_use(secure[i].kind);
		snprintf(dir, sizeof(dir), "%s%s", below, secure[i].dir);
		yes = worker_never_waits(dir, SECURE_CLIENTS) && yes;
	}
	http_use(HTTP_PLAIN);
	return yes;
}

static bool
encrypted_clients_delay_no_other(void)
{
	return encrypted_never_waits("");
}

/* The last file's beginning is in memory, not its indirect block; the disk is busy with the others. */
static bool
indirect_block_delays_no_other(void)
{
	double begun = http_now();
	bool yes = evict_indirect("data/indirect/24", "data/indirect/25") &&
		   worker_never_waits("indirect", INDIRECT_CLIENTS);

	printf("# evicted and sent in %.1f s\n", http_now() - begun);
	return yes;
}

/* The last pages are acknowledged, and freed, after the client has read them. */
static bool
await_eviction(const char *dir)
{
	double end = http_now() + EVICT_SECONDS;
	long pages;

	while ((pages = crowd_resident(&crowd, dir)) != 0 && http_now() < end)
		usleep(100000);
	printf("# %ld pages of %s are in memory\n", pages, dir);
	return pages == 0;
}

/*
 * With cache = drop no page stays, without it some do.  The second download finds in memory what the
 * comparison has read.
 */
static bool
drop_evicts_and_is_exact(void)
{
	bool yes = worker_never_sleeps("keep", KEEP_CLIENTS);

	yes = yes && crowd_resident(&crowd, "keep") > 0;
	yes = responses_are_exact("keep") && yes;
	yes = worker_never_sleeps("drop", DROP_CLIENTS) && yes;
	yes = await_eviction("drop") && yes;
	yes = responses_are_exact("drop") && yes;
	return worker_never_waits("drop", KEEP_CLIENTS) && yes;
}

/* Returns true if the request of a file that the disk cannot read ended with status 500, or too early. */
static bool
is_refused(const struct http *ht, unsigned i)
{
	char file[64];

	snprintf(file, sizeof(file), "data/broken/%u", i);
	printf("# broken/%u: status %d, %lld of %lld bytes, %s\n", i,
	    ht->ht_status, (long long)ht->ht_got, (long long)ht->ht_length,
	    ht->ht_failed ? "aborted"
	    : ht->ht_done ? "ended"
			  : "pending");
	return http_is_aborted(ht, file) ||
	       (ht->ht_done && ht->ht_status == 500);
}

/*
 * The disk never reads a block of the first files, and one block of the next file fails once.  Each
 * request of those ends, and no other one does; then the disk serves the file that failed once.
 */
static bool
disk_error_ends_only_its_request(void)
{
	bool yes =
	    guest_mute(true) && worker_never_sleeps("broken", BROKEN_CLIENTS);
	unsigned refused = 0, wrong;

	for (unsigned i = 0; i < BROKEN_ONCE + 1; i++)
		refused += is_refused(&crowd.cr_clients[i], i);
	wrong = crowd_end(&crowd, "broken");
	printf("# %u requests failed, of %u files with errors\n", wrong,
	    BROKEN_ONCE + 1);
	yes = yes && refused == BROKEN_ONCE + 1 && wrong == refused;
	yes = yes && worker_never_sleeps("broken", BROKEN_CLIENTS) &&
	      crowd_end(&crowd, "broken") == BROKEN_ONCE;
	return guest_mute(false) && yes;
}

/* A disk thread sends the range, and reads its first byte before it sends the head. */
static bool
disk_error_of_a_thread_is_refused(void)
{
	struct http ht;
	bool yes;

	if (!is_mounted("data/refused", "nullfs") || !http_open(&ht, 5) ||
	    !guest_mute(true))
		return false;
	http_ask(&ht, "/refused/6", REFUSED_RANGE);
	http_await(&ht, CLIENT_SECONDS);
	printf("# status %d\n", ht.ht_status);
	yes = ht.ht_done && !ht.ht_failed && ht.ht_status == 500;
	http_close(&ht);
	return guest_mute(false) && yes;
}

/* ------------------------------------------------------------------------- ZFS */

/* Copies n files of data/cold to a new directory of the pool. */
static bool
pool_copy(const char *dir, unsigned n)
{
	char from[64], to[64];

	snprintf(to, sizeof(to), POOL_ROOT "/%s", dir);
	if (mkdir(to, 0755) == -1)
		return false;
	for (unsigned i = 0; i < n; i++) {
		snprintf(from, sizeof(from), "data/cold/%u", i);
		snprintf(to, sizeof(to), POOL_ROOT "/%s/%u", dir, i);
		if (!copy_file(from, to))
			return false;
	}
	return true;
}

static bool
pool_fill(void)
{
	for (size_t i = 0; i < nitems(secure); i++)
		if (!pool_copy(secure[i].dir, SECURE_CLIENTS))
			return false;
	return mkdir(POOL_ROOT "/sized", 0755) == 0 &&
	       copy_sized(POOL_ROOT "/sized") &&
	       pool_copy("cold", POOL_CLIENTS) &&
	       pool_copy("beside", POOL_CLIENTS) &&
	       pool_copy("drop", KEEP_CLIENTS);
}

/* A cached file of ZFS waits for uncached ones of its device, since disk threads send it too. */
static bool
cached_file_of_zfs_is_sent(void)
{
	bool yes;

	crowd_cached = "/zfs/sized/4097";
	yes = worker_is_awake("zfs/beside", POOL_CLIENTS);
	crowd_cached = "/hot.txt";
	return responses_are_exact("zfs/beside") && yes;
}

/*
 * Disk threads send, since sendfile(2) waits.  The pages that they send are copies of what the ARC has.
 * With cache = drop no page stays, but the ARC keeps its bytes.
 */
static bool
files_of_zfs_delay_no_other(void)
{
	long cold = pool_arc_bytes();
	bool yes = worker_never_sleeps("zfs/cold", POOL_CLIENTS);

	printf("# %ld pages are in memory, and %ld bytes more in the ARC\n",
	    crowd_resident(&crowd, "zfs/cold"), pool_arc_bytes() - cold);
	yes = responses_are_exact("zfs/cold") && yes;
	yes = encrypted_never_waits("zfs/") && yes;
	yes = all_are_exact("zfs/sized") && yes;
	yes = cached_file_of_zfs_is_sent() && yes;
	cold = pool_arc_bytes();
	yes = worker_never_sleeps("zfs/drop", KEEP_CLIENTS) && yes;
	yes = await_eviction("zfs/drop") && yes;
	printf("# %ld bytes more in the ARC\n", pool_arc_bytes() - cold);
	yes = responses_are_exact("zfs/drop") && yes;
	return is_in_log(
		   SERVER_LOG, "(zfs): residency: no check is available") &&
	       yes;
}

static bool
pool_delays_no_other(void)
{
	if (pool_is_possible())
		return pool_make() && pool_fill() && pool_evict() &&
		       is_mounted(POOL_ROOT, "zfs") &&
		       files_of_zfs_delay_no_other();
	check_skipped = "there is no zpool(8)";
	return false;
}

/* ----------------------------------------------------------- reload and upgrade */

/* Returns true if another process serves, in capability mode. */
static bool
is_other(pid_t old)
{
	pid_t server = watch_server(master);

	return server != 0 && server != old && watch_is_confined(server);
}

static bool
await_other(pid_t old)
{
	double end = http_now() + CHANGE_SECONDS;

	while (http_now() < end) {
		if (is_other(old))
			return true;
		usleep(100000);
	}
	printf("# no other server process after %d s\n", CHANGE_SECONDS);
	return false;
}

/* A signal in the middle of transmissions. */
static bool
signal_loses_nothing(int signo, const char *dir)
{
	static struct crowd cr;
	pid_t old = watch_server(master);
	unsigned wrong;
	bool yes;

	if (!crowd_begin(&cr, old, dir, CHANGE_CLIENTS))
		return false;
	crowd_run(&cr, CLIENT_SECONDS, CROWD_SIZE);
	kill(master, signo);
	crowd_run(&cr, CLIENT_SECONDS, OFF_MAX);
	wrong = crowd_end(&cr, dir);
	printf("# %u of %u responses are wrong\n", wrong, cr.cr_n);
	yes = await_other(old) && is_confined();
	return yes && wrong == 0 && cr.cr_pings > 0;
}

static bool
reload_loses_nothing(void)
{
	return signal_loses_nothing(SIGHUP, "reload");
}

static bool
upgrade_loses_nothing(void)
{
	return signal_loses_nothing(SIGUSR2, "upgrade");
}

/* Requests a path that is in no file. */
static bool
ask_missing(const char *path)
{
	struct http ht;

	if (!http_open(&ht, 5))
		return false;
	http_ask(&ht, path, NULL);
	http_await(&ht, 10);
	http_close(&ht);
	return ht.ht_status == 404;
}

/* Until the old process has stopped accepting, it may log a request. */
static bool
await_new_log(void)
{
	double end = http_now() + CHANGE_SECONDS;

	while (guest_count(ACCESS_LOG, "", "/between") == 0) {
		if (!ask_missing("/between") || http_now() > end)
			return false;
		usleep(500000);
	}
	return true;
}

static bool
log_is_rotated(void)
{
	pid_t old = watch_server(master);

	if (!ask_missing("/before") || !is_in_log(ACCESS_LOG, "/before") ||
	    rename(ACCESS_LOG, ACCESS_LOG ".0") != 0)
		return false;
	kill(master, SIGHUP);
	return await_other(old) && await_new_log() && ask_missing("/after") &&
	       is_in_log(ACCESS_LOG, "/after") && is_confined() &&
	       guest_count(ACCESS_LOG ".0", "", "/before") == 1 &&
	       guest_count(ACCESS_LOG ".0", "", "/after") == 0;
}

/* Sends SIGHUP and SIGUSR2 by turns, each when the server of the last one serves, while clients connect. */
static bool
changes_refuse_nothing(void)
{
	static struct churn ch;
	double end = http_now() + check_seconds, sent = 0;
	unsigned changes = 0;
	pid_t old = 0;
	bool yes;

	churn_begin(&ch);
	do {
		churn_run(&ch);
		if (old != 0 && !is_other(old))
			continue;
		old = watch_server(master);
		sent = http_now();
		kill(master, changes++ % 2 == 0 ? SIGHUP : SIGUSR2);
	} while (http_now() < end && http_now() < sent + CHANGE_SECONDS);
	yes = await_other(old);
	printf("# %u reloads and upgrades\n", changes);
	return churn_end(&ch) && yes;
}

static bool
ends_in_order(void)
{
	int status;

	kill(master, SIGTERM);
	status = guest_await(master, CHANGE_SECONDS);
	printf("# its status is %d\n", status);
	return status == 0;
}

const struct check checks[] = {
    {"the server serves", serves},
    {"capability mode, and no spare rights", is_confined},
    {"sizes and ranges are exact", sizes_and_ranges_are_exact},
    {"files of nullfs are exact", files_of_nullfs_are_exact},
    {"files of tmpfs are exact", files_of_tmpfs_are_exact},
    {"TLS and HTTP/2 are exact", encrypted_is_exact},
    {"cold clients delay no other", cold_clients_delay_no_other},
    {"cold clients with TLS delay no other", encrypted_clients_delay_no_other},
    {"an evicted indirect block delays no other",
	indirect_block_delays_no_other},
    {"dropped files leave no page, and are exact", drop_evicts_and_is_exact},
    {"a disk error ends only its request", disk_error_ends_only_its_request},
    {"a disk error of a disk thread is refused",
	disk_error_of_a_thread_is_refused},
    {"files of ZFS are exact, and delay no other", pool_delays_no_other},
    {"a reload loses nothing", reload_loses_nothing},
    {"the access log is rotated", log_is_rotated},
    {"an upgrade loses nothing", upgrade_loses_nothing},
    {"reloads and upgrades by turns refuse no connection",
	changes_refuse_nothing},
    {"the server ends in order", ends_in_order},
};

const size_t nchecks = nitems(checks);
