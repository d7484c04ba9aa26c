/*
 * spindle: a FUSE file system with one file, `disk`, which takes as long to read as
 * a disk that rotates.  A loop device on it is a disk with a head:
 *
 *   spindle IMAGE MOUNTPOINT
 *   losetup --find --show --direct-io=on MOUNTPOINT/disk
 *
 * Writes take no time, and zeros are not stored, so that a disk of any size can be
 * filled.  The file `head` has the counters since the start, a name and a number each:
 * requests, bytes, seeks, and the microseconds busy, of which seeking and waiting for
 * the platter.
 *
 * One request is read at a time.  A drive knows QUEUE requests, and takes the one whose
 * first byte passes the head first, unless the oldest has waited for OLD; requests that
 * follow each other on the platter are read in their order.  It takes
 *
 *   seek      SEEK_LEAST + SEEK_ROOT * sqrt(distance), distance as a part of the image;
 *             8.5 ms for two random places
 *   rotation  until the platter has turned to the first byte; ROTATION / 2 on average
 *   transfer  bytes / RATE
 *
 * and the transfer alone if the request begins where the last one ended, as drives read on
 * into their own memory.  The parameters are those of published data sheets of
 * 7200 rpm drives.
 *
 * It runs in the foreground and dies with its parent, so that no mount hangs.
 */
#define FUSE_USE_VERSION 31

#include <sys/prctl.h>
#include <sys/queue.h>

#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SEEK_LEAST 500.0   /* to the next track, microseconds */
#define SEEK_ROOT  15000.0 /* mean of sqrt(distance) is 8/15 */
#define ROTATION   (60e6 / 7200)
#define RATE	   190.0 /* bytes per microsecond */
#define QUEUE	   32
#define OLD	   1e6 /* microseconds */
#define DISK	   "/disk"
#define HEAD	   "/head"

struct request {
	TAILQ_ENTRY(request) rq_link;
	double rq_begun; /* microseconds */
	off_t rq_off;
	size_t rq_len;
	bool rq_done;
	pthread_cond_t rq_changed;
};

static TAILQ_HEAD(, request) queue = TAILQ_HEAD_INITIALIZER(queue);
/* The lock guards everything between it and the next blank line. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;
static off_t head_at;	 /* where the last request ended */
static double head_free; /* when it ends, microseconds */
static uint64_t requests, bytes, seeks;
static double busy, seeking, turning;

static int image = -1;
static off_t image_size;

static double
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static double
seek_us(off_t to)
{
	double distance = fabs((double)(to - head_at)) / (double)image_size;

	return SEEK_LEAST + SEEK_ROOT * sqrt(distance);
}

/* The wait for the first byte, when the head is there. */
static double
rotation_us(off_t to, double at)
{
	double wait = fmod((double)to / RATE - at, ROTATION);

	return wait < 0 ? wait + ROTATION : wait;
}

/* From `start` to the first byte. */
static double
position_us(const struct request *rq, double start)
{
	double seek;

	if (rq->rq_off == head_at)
		return 0;
	seek = seek_us(rq->rq_off);
	return seek + rotation_us(rq->rq_off, start + seek);
}

/* Is another request read before this one, as it ends where this one begins?  Under the lock. */
static bool
request_follows(const struct request *rq)
{
	const struct request *before;

	TAILQ_FOREACH(before, &queue, rq_link)
	if (before->rq_off + (off_t)before->rq_len == rq->rq_off)
		return true;
	return false;
}

/* Under the lock. */
static struct request *
request_next(double start)
{
	struct request *rq, *best = TAILQ_FIRST(&queue);
	double least = INFINITY, us;
	int n = 0;

	if (best == NULL || start - best->rq_begun > OLD)
		return best;
	TAILQ_FOREACH(rq, &queue, rq_link)
	{
		if (n++ == QUEUE)
			break;
		us = position_us(rq, start);
		if (us < least && !request_follows(rq)) {
			least = us;
			best = rq;
		}
	}
	return best;
}

/* Moves the head; under the lock. */
static void
request_account(const struct request *rq, double start)
{
	double position = position_us(rq, start), seek;

	if (rq->rq_off != head_at) {
		seek = seek_us(rq->rq_off);
		seeks++;
		seeking += seek;
		turning += position - seek;
	}
	requests++;
	bytes += rq->rq_len;
	head_free = start + position + (double)rq->rq_len / RATE;
	busy += head_free - start;
	head_at = rq->rq_off + (off_t)rq->rq_len;
}

static void
sleep_until(double us)
{
	struct timespec ts = {.tv_sec = (time_t)(us / 1e6)};

	ts.tv_nsec = (long)((us - (double)ts.tv_sec * 1e6) * 1e3);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static void *
head_run(void *arg)
{
	struct request *rq;
	double start, end;

	(void)arg;
	pthread_mutex_lock(&lock);
	for (;;) {
		while (TAILQ_EMPTY(&queue))
			pthread_cond_wait(&asked, &lock);
		/* Not now: this thread may be late, the head is not. */
		start = fmax(head_free, TAILQ_FIRST(&queue)->rq_begun);
		rq = request_next(start);
		start = fmax(start, rq->rq_begun);
		TAILQ_REMOVE(&queue, rq, rq_link);
		request_account(rq, start);
		end = head_free;
		pthread_mutex_unlock(&lock);
		sleep_until(end);
		pthread_mutex_lock(&lock);
		rq->rq_done = true;
		pthread_cond_signal(&rq->rq_changed);
	}
	return NULL;
}

static void
head_wait(off_t off, size_t len)
{
	struct request rq = {.rq_begun = now_us(),
	    .rq_off = off,
	    .rq_len = len,
	    .rq_changed = PTHREAD_COND_INITIALIZER};

	pthread_mutex_lock(&lock);
	TAILQ_INSERT_TAIL(&queue, &rq, rq_link);
	pthread_cond_signal(&asked);
	while (!rq.rq_done)
		pthread_cond_wait(&rq.rq_changed, &lock);
	pthread_mutex_unlock(&lock);
}

static int
head_text(char *text, size_t size)
{
	int n;

	pthread_mutex_lock(&lock);
	n = snprintf(text, size,
	    "requests %ju\nbytes %ju\nseeks %ju\nbusy %.0f\nseeking %.0f\n"
	    "turning %.0f\n",
	    (uintmax_t)requests, (uintmax_t)bytes, (uintmax_t)seeks, busy,
	    seeking, turning);
	pthread_mutex_unlock(&lock);
	return n;
}

static int
spindle_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	(void)fi;
	*st = (struct stat){.st_nlink = 1};
	if (strcmp(path, "/") == 0)
		st->st_mode = S_IFDIR | 0755;
	else if (strcmp(path, DISK) == 0) {
		st->st_mode = S_IFREG | 0600;
		st->st_size = image_size;
	} else if (strcmp(path, HEAD) == 0)
		st->st_mode = S_IFREG | 0444;
	else
		return -ENOENT;
	return 0;
}

static int
spindle_open(const char *path, struct fuse_file_info *fi)
{
	fi->fh = strcmp(path, HEAD) == 0;
	fi->direct_io = 1;
	return 0;
}

static int
spindle_read(const char *path, char *buf, size_t size, off_t off,
    struct fuse_file_info *fi)
{
	ssize_t n;
	int error;

	(void)path;
	if (fi->fh == 1)
		return off > 0 ? 0 : head_text(buf, size);
	/* A hole is not read through the page cache, where it would stay. */
	if (lseek(image, off, SEEK_DATA) >= off + (off_t)size ||
	    (lseek(image, off, SEEK_DATA) == -1 && errno == ENXIO)) {
		memset(buf, 0, size);
		n = (ssize_t)size;
	} else
		n = pread(image, buf, size, off);
	error = errno;
	head_wait(off, size);
	return n == -1 ? -error : (int)n;
}

static int
spindle_write(const char *path, const char *buf, size_t size, off_t off,
    struct fuse_file_info *fi)
{
	ssize_t n = (ssize_t)size;

	(void)path;
	if (fi->fh == 1)
		return -EBADF;
	if (size > 0 && buf[0] == 0 && memcmp(buf, buf + 1, size - 1) == 0) {
		if (fallocate(image, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			off, n) == -1)
			return -errno;
		return (int)n;
	}
	n = pwrite(image, buf, size, off);
	return n == -1 ? -errno : (int)n;
}

static int
spindle_fsync(const char *path, int data, struct fuse_file_info *fi)
{
	(void)path;
	(void)data;
	(void)fi;
	return 0;
}

static void *
spindle_init(struct fuse_conn_info *conn, struct fuse_config *cfg)
{
	pthread_t thread;

	/* A drive is asked for QUEUE at once, and the loop device is asked for more. */
	conn->max_background = 4 * QUEUE;
	conn->congestion_threshold = 4 * QUEUE;
	cfg->entry_timeout = cfg->attr_timeout = 3600;
	if (pthread_create(&thread, NULL, head_run, NULL) != 0)
		abort();
	return NULL;
}

int
main(int argc, char **argv)
{
	static const struct fuse_operations operations = {
	    .init = spindle_init,
	    .getattr = spindle_getattr,
	    .open = spindle_open,
	    .read = spindle_read,
	    .write = spindle_write,
	    .fsync = spindle_fsync,
	};
	char *fuse_argv[] = {
	    argv[0], "-f", "-o", "max_threads=200", argv[2], NULL};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc != 3)
		return 2;
	image = open(argv[1], O_RDWR | O_CLOEXEC);
	if (image == -1) {
		perror(argv[1]);
		return 1;
	}
	image_size = lseek(image, 0, SEEK_END);
	return fuse_main(5, fuse_argv, &operations, NULL);
}
