/*
 * compare: see compare.h.
 */
#include <sys/param.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/sysctl.h>
#include <sys/uio.h>
/* The order matters. */
#include <sys/ktrace.h>
#include <sys/user.h>

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/freebsd/compare.h"
#include "tests/freebsd/crowd.h"
#include "tests/freebsd/guest.h"
#include "tests/freebsd/watch.h"

#define FILES	       "data" /* where the disk with the files is mounted */
#define TRACE	       "tmp/trace"
#define ASLEEP	       "\npagewise_loop_asleep_seconds_total"
#define ADMIN	       "127.0.0.1:8081"
#define ADMIN_PORT     8081
#define WORKER	       "pw-worker0"
#define CLIENTS	       64
#define START_SECONDS  60
#define CLIENT_SECONDS 600

/* Counts of the loop alone, and of all threads. */
struct counts {
	long co_loop_calls, co_calls;
	long co_loop_switches, co_switches;
	double co_asleep; /* seconds of the loop */
};

static const char *const paths[] = {
    "native", "pool", "aio", "blocking", "copy"};

/* Evicts all files. */
static bool
mount_again(const char *from)
{
	char type[] = "fstype", ufs[] = "ufs", path[] = "fspath",
	     files[] = FILES, device[] = "from", name[64], ro[] = "ro";
	struct iovec iov[] = {{type, sizeof(type)}, {ufs, sizeof(ufs)},
	    {path, sizeof(path)}, {files, sizeof(files)},
	    {device, sizeof(device)}, {name, 0}, {ro, sizeof(ro)}, {NULL, 0}};

	iov[5].iov_len = (size_t)snprintf(name, sizeof(name), "%s", from) + 1;
	return unmount(FILES, 0) == 0 && nmount(iov, nitems(iov), 0) == 0;
}

/* Adds up the loop's sleep, of all calls. */
static bool
read_asleep(double *seconds)
{
	static const char request[] =
	    "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
	static char text[256 << 10];
	struct sockaddr_in sin = {
	    .sin_family = AF_INET, .sin_port = htons(ADMIN_PORT)};
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t len = 0;
	ssize_t n;

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(sock, (struct sockaddr *)(void *)&sin, sizeof(sin)) == 0 &&
	    send(sock, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0)
		while (
		    len + 1 < sizeof(text) &&
		    (n = recv(sock, text + len, sizeof(text) - 1 - len, 0)) > 0)
			len += (size_t)n;
	close(sock);
	text[len] = '\0';
	*seconds = 0;
	for (char *at = text; (at = strstr(at, ASLEEP)) != NULL; at++)
		if (strchr(at, '}') != NULL)
			*seconds += strtod(strchr(at, '}') + 1, NULL);
	return strstr(text, ASLEEP) != NULL;
}

/* Returns the loop's thread, or 0. */
static lwpid_t
count_switches(pid_t server, struct counts *co)
{
	const int name[] = {
	    CTL_KERN, KERN_PROC, KERN_PROC_PID | KERN_PROC_INC_THREAD, server};
	static struct kinfo_proc threads[256];
	size_t size = sizeof(threads);
	lwpid_t loop = 0;
	long n;

	if (sysctl(name, nitems(name), threads, &size, NULL, 0) == -1)
		return 0;
	for (size_t i = 0; i < size / sizeof(threads[0]); i++) {
		n = threads[i].ki_rusage.ru_nvcsw +
		    threads[i].ki_rusage.ru_nivcsw;
		co->co_switches += n;
		if (strcmp(threads[i].ki_tdname, WORKER) != 0)
			continue;
		co->co_loop_switches += n;
		loop = threads[i].ki_tid;
	}
	return loop;
}

/* Counts what ktrace(2) has written. */
static bool
count_calls(lwpid_t loop, struct counts *co)
{
	FILE *fp = fopen(TRACE, "r");
	struct ktr_header kh;

	if (fp == NULL)
		return false;
	while (fread(&kh, sizeof(kh), 1, fp) == 1 &&
	       fseek(fp, kh.ktr_len, SEEK_CUR) == 0) {
		if ((kh.ktr_type & ~KTR_TYPE) != KTR_SYSCALL)
			continue;
		co->co_calls++;
		co->co_loop_calls += kh.ktr_tid == loop;
	}
	fclose(fp);
	return co->co_calls > 0;
}

static bool
start_trace(pid_t server)
{
	FILE *fp;

	unlink(TRACE);
	fp = fopen(TRACE, "w");
	if (fp == NULL)
		return false;
	fclose(fp);
	return ktrace(TRACE, KTROP_SET, KTRFAC_SYSCALL, server) == 0;
}

/* Prints the figures of one line of the table: run has their names. */
static bool
download(const char *path, pid_t server)
{
	static struct crowd cr;
	struct counts before = {0}, after = {0};
	double begun = http_now(), mib;
	lwpid_t loop;
	unsigned wrong;

	if (count_switches(server, &before) == 0 ||
	    !read_asleep(&before.co_asleep) || !start_trace(server)) {
		printf("# process %d cannot be watched\n", (int)server);
		return false;
	}
	if (!crowd_begin(&cr, server, "cold", CLIENTS)) {
		printf("# the server does not respond\n");
		return false;
	}
	crowd_run(&cr, CLIENT_SECONDS, OFF_MAX);
	ktrace(TRACE, KTROP_CLEAR, KTRFAC_SYSCALL, server);
	begun = http_now() - begun;
	loop = count_switches(server, &after);
	wrong = crowd_end(&cr, "cold");
	if (wrong > 0 || !read_asleep(&after.co_asleep) ||
	    !count_calls(loop, &after)) {
		printf("# %u responses are wrong, or nothing was counted\n",
		    wrong);
		return false;
	}
	mib = CLIENTS * (double)CROWD_SIZE / (1 << 20);
	printf("# %s: %.1f %.1f %.1f %.1f %.2f %.2f %.0f\n", path,
	    (double)after.co_loop_calls / mib, (double)after.co_calls / mib,
	    (double)(after.co_loop_switches - before.co_loop_switches) / mib,
	    (double)(after.co_switches - before.co_switches) / mib,
	    (after.co_asleep - before.co_asleep) / begun * 100, begun,
	    cr.cr_worst * 1000);
	return true;
}

static bool
compare_path(const char *path)
{
	const char *const argv[] = {"./pagewise", "-c", "pagewise.conf",
	    "--send-path", path, "--admin", ADMIN, "--access-log", "off", NULL};
	pid_t master = guest_start(argv, SERVER_LOG);
	struct http ht;
	bool yes = http_open(&ht, START_SECONDS);

	if (yes) {
		http_ask(&ht, "/hot.txt", NULL);
		yes = http_await(&ht, START_SECONDS);
		http_close(&ht);
	}
	if (!yes)
		printf("# there is no server\n");
	yes = yes && download(path, watch_server(master));
	kill(master, SIGTERM);
	return guest_await(master, START_SECONDS) == 0 && yes;
}

int
compare(unsigned rounds)
{
	size_t n = rounds * nitems(paths);
	const char *path;
	struct statfs sf;

	if (statfs(FILES, &sf) == -1)
		return 1;
	printf("TAP version 13\n1..%zu\n", n);
	for (size_t i = 0; i < n; i++) {
		path = paths[i % nitems(paths)];
		printf("%sok %zu - %s\n",
		    mount_again(sf.f_mntfromname) && compare_path(path)
			? ""
			: "not ",
		    i + 1, path);
	}
	guest_diagnose(SERVER_LOG, false);
	return 0;
}
