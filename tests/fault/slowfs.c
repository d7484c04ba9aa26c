/*
 * slowfs: a FUSE file system that shows a source directory, and
 * misbehaves on command: its lookups, opens, reads, writes and directory reads can be
 * delayed, held for as long as a test likes, or failed.
 *
 *   slowfs SOURCE CONTROL-SOCKET MOUNTPOINT [BYTES [direct] [fresh] [inodes] [mtime] [ro]]
 *
 * BYTES is the largest read that the kernel may ask for, at least a page; 0 for
 * as much as it likes.  direct: nothing is kept in memory, every read comes here.
 * fresh: the kernel asks for attributes each time, so that it sees changes of
 * SOURCE.  inodes: inode numbers are those of SOURCE, not those of libfuse.
 * mtime: the file system has no ctime, and returns mtime in its place.
 * ro: it is mounted read-only, so that a read does not make the kernel ask for
 * attributes.
 *
 * Commands come in over a stream socket, a line each, each with a line for an
 * answer.  OP is lookup, open, read, write or readdir; a gate applies to paths
 * that begin with PREFIX (without the leading slash; may be empty), and to
 * reads that touch OFF..OFF+LEN (LEN 0: to the end): bytes of a file, or names
 * of a directory, "." and ".." included.  The first gate that fits counts.
 *
 *   set OP delay MS OFF LEN PREFIX
 *   set OP hang 0 OFF LEN PREFIX
 *   set OP error ERRNO OFF LEN PREFIX
 *   held OP    how many calls are being held
 *   seen OP    how many calls came in since the start
 *   release    removes all gates and lets everything go
 *   swap ...   release and set, with nothing in between
 *
 * It runs in the foreground and dies with its parent, so that no mount hangs.
 */
#define FUSE_USE_VERSION 31

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NGATES 32

enum op { OP_LOOKUP, OP_OPEN, OP_READ, OP_WRITE, OP_READDIR, OP_MAX };
enum kind { KIND_DELAY, KIND_HANG, KIND_ERROR, KIND_MAX };

static const char *const op_names[] = {
    "lookup", "open", "read", "write", "readdir"};
static const char *const kind_names[] = {"delay", "hang", "error"};

struct gate {
	enum op gate_op;
	enum kind gate_kind;
	int gate_value; /* milliseconds or errno */
	off_t gate_off;
	off_t gate_len;
	char gate_prefix[256];
};

/* The lock guards everything between it and the next blank line. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct gate gates[NGATES];
static unsigned ngates;
static unsigned generation; /* of gates: one more with every release */
static unsigned held[OP_MAX];
static unsigned seen[OP_MAX];

static unsigned max_read; /* 0: as it likes */
static bool direct, fresh, inodes, no_ctime;
static int source_fd = -1;
static int control_fd = -1;

static const char *
relative(const char *path)
{
	return path[1] == '\0' ? "." : path + 1;
}

static const struct gate *
gate_find(enum op op, const char *path, off_t off, size_t len)
{
	const struct gate *g;

	for (g = gates; g < gates + ngates; g++) {
		if (g->gate_op != op ||
		    strncmp(path + 1, g->gate_prefix, strlen(g->gate_prefix)))
			continue;
		if (off + (off_t)len <= g->gate_off && g->gate_off > 0)
			continue;
		if (g->gate_len != 0 && off >= g->gate_off + g->gate_len)
			continue;
		return g;
	}
	return NULL;
}

/*
 * Under the lock.  A caller that is killed is let go, as by NFS: the kernel
 * would keep the dead process for as long as there is no answer.
 */
static int
gate_hold(enum op op)
{
	unsigned gen = generation;
	struct timespec ts;

	held[op]++;
	while (gen == generation && !fuse_interrupted()) {
		clock_gettime(CLOCK_REALTIME, &ts);
		ts.tv_sec += 1;
		pthread_cond_timedwait(&released, &lock, &ts);
	}
	if (gen != generation)
		return 0;
	held[op]--;
	return -EINTR;
}

/* Passes at once, later, or with an error to give to the caller. */
static int
gate_pass(enum op op, const char *path, off_t off, size_t len)
{
	const struct gate *g;
	struct timespec ts = {0};
	int error = 0;

	pthread_mutex_lock(&lock);
	seen[op]++;
	g = gate_find(op, path, off, len);
	if (g && g->gate_kind == KIND_ERROR)
		error = -g->gate_value;
	if (g && g->gate_kind == KIND_DELAY) {
		ts.tv_sec = g->gate_value / 1000;
		ts.tv_nsec = g->gate_value % 1000 * 1000000L;
	}
	if (g && g->gate_kind == KIND_HANG)
		error = gate_hold(op);
	pthread_mutex_unlock(&lock);
	nanosleep(&ts, NULL);
	return error;
}

static int
slow_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	int error;

	/* The kernel may keep attributes for an hour: this is a lookup. */
	(void)fi;
	error = gate_pass(OP_LOOKUP, path, 0, 0);
	if (error == 0 &&
	    fstatat(source_fd, relative(path), st, AT_SYMLINK_NOFOLLOW) == -1)
		error = -errno;
	if (no_ctime)
		st->st_ctim = st->st_mtim;
	return error;
}

static int
slow_open(const char *path, struct fuse_file_info *fi)
{
	int error, fd;

	error = gate_pass(OP_OPEN, path, 0, 0);
	if (error)
		return error;
	fd = openat(source_fd, relative(path),
	    (fi->flags & O_ACCMODE) | (fi->flags & O_CREAT) | O_CLOEXEC, 0600);
	if (fd == -1)
		return -errno;
	fi->fh = (uint64_t)fd;
	fi->direct_io = direct;
	return 0;
}

static int
slow_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	(void)mode;
	fi->flags |= O_CREAT;
	return slow_open(path, fi);
}

static int
slow_write(const char *path, const char *buf, size_t size, off_t off,
    struct fuse_file_info *fi)
{
	ssize_t n;
	int error;

	error = gate_pass(OP_WRITE, path, off, size);
	if (error)
		return error;
	n = pwrite((int)fi->fh, buf, size, off);
	return n == -1 ? -errno : (int)n;
}

static int
slow_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	(void)path;
	if (fi == NULL)
		return -EACCES;
	return ftruncate((int)fi->fh, size) == -1 ? -errno : 0;
}

static int
slow_read(const char *path, char *buf, size_t size, off_t off,
    struct fuse_file_info *fi)
{
	ssize_t n;
	int error;

	error = gate_pass(OP_READ, path, off, size);
	if (error)
		return error;
	n = pread((int)fi->fh, buf, size, off);
	return n == -1 ? -errno : (int)n;
}

static int
slow_release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	close((int)fi->fh);
	return 0;
}

struct handle {
	DIR *h_dir;
	off_t h_given; /* names */
};

static int
slow_opendir(const char *path, struct fuse_file_info *fi)
{
	struct handle *h = calloc(1, sizeof(*h));
	int fd;

	if (h == NULL)
		return -ENOMEM;
	fd = openat(source_fd, relative(path), O_RDONLY | O_DIRECTORY);
	if (fd != -1)
		h->h_dir = fdopendir(fd);
	if (h->h_dir == NULL) {
		free(h);
		return -errno;
	}
	fi->fh = (uint64_t)(uintptr_t)h;
	return 0;
}

/* As many as the kernel has room for: a directory is read in many calls. */
static int
slow_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
    struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	struct handle *h = (struct handle *)(uintptr_t)fi->fh;
	struct dirent *de;
	int error;

	(void)flags;
	if (off == 0) {
		rewinddir(h->h_dir);
		h->h_given = 0;
	} else
		seekdir(h->h_dir, off);
	error = gate_pass(OP_READDIR, path, h->h_given, 1);
	if (error)
		return error;
	while ((de = readdir(h->h_dir)) != NULL &&
	       fill(buf, de->d_name, NULL, de->d_off, 0) == 0)
		h->h_given++;
	return 0;
}

static int
slow_releasedir(const char *path, struct fuse_file_info *fi)
{
	struct handle *h = (struct handle *)(uintptr_t)fi->fh;

	(void)path;
	closedir(h->h_dir);
	free(h);
	return 0;
}

static int
name_find(const char *name, const char *const *names, int n)
{
	int i;

	for (i = 0; i < n && strcmp(name, names[i]) != 0; i++)
		;
	return i;
}

/* Under the lock. */
static void
gates_open(void)
{
	ngates = 0;
	generation++;
	memset(held, 0, sizeof(held));
	pthread_cond_broadcast(&released);
}

/* Under the lock. */
static long
gate_set(const char *line, enum op op)
{
	struct gate g = {.gate_op = op};
	char kind[16];

	if (ngates == NGATES ||
	    sscanf(line, "%*s %*s %15s %d %jd %jd %255[^\n]", kind,
		&g.gate_value, &g.gate_off, &g.gate_len, g.gate_prefix) < 4)
		return -1;
	g.gate_kind = (enum kind)name_find(kind, kind_names, KIND_MAX);
	gates[ngates++] = g;
	return 0;
}

/* Runs one command; the number to answer, or -1. */
static long
command(const char *line)
{
	char verb[16], op[16] = "";
	long answer = -1;
	int o;

	if (sscanf(line, "%15s %15s", verb, op) < 1)
		return -1;
	o = name_find(op, op_names, OP_MAX);
	pthread_mutex_lock(&lock);
	if (strcmp(verb, "release") == 0) {
		gates_open();
		answer = 0;
	} else if (strcmp(verb, "held") == 0 && o < OP_MAX) {
		answer = held[o];
	} else if (strcmp(verb, "seen") == 0 && o < OP_MAX) {
		answer = seen[o];
	} else if (strcmp(verb, "set") == 0 && o < OP_MAX) {
		answer = gate_set(line, (enum op)o);
	} else if (strcmp(verb, "swap") == 0 && o < OP_MAX) {
		gates_open();
		answer = gate_set(line, (enum op)o);
	}
	pthread_mutex_unlock(&lock);
	return answer;
}

static void *
control_run(void *arg)
{
	char line[512];
	FILE *in;
	int fd;

	(void)arg;
	while ((fd = accept(control_fd, NULL, NULL)) != -1) {
		in = fdopen(fd, "r");
		if (in == NULL)
			break;
		while (fgets(line, sizeof(line), in) != NULL)
			dprintf(fd, "%ld\n", command(line));
		fclose(in);
	}
	return NULL;
}

static void *
slow_init(struct fuse_conn_info *conn, struct fuse_config *cfg)
{
	pthread_t thread;

	/* The mount option alone is refused. */
	if (max_read > 0)
		conn->max_read = max_read;
	cfg->kernel_cache = !fresh;
	cfg->use_ino = inodes;
	/* Without it libfuse 3.17 hears of no caller that is killed; main ignores the signal. */
	cfg->intr = 1;
	cfg->intr_signal = SIGUSR1;
	cfg->entry_timeout = cfg->attr_timeout = fresh ? 0 : 3600;
	if (pthread_create(&thread, NULL, control_run, NULL) != 0)
		abort();
	return NULL;
}

static int
control_listen(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd;

	strncpy(sun.sun_path, path, sizeof(sun.sun_path) - 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1 || bind(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1 ||
	    listen(fd, 16) == -1)
		return -1;
	return fd;
}

int
main(int argc, char **argv)
{
	static const struct fuse_operations operations = {
	    .init = slow_init,
	    .getattr = slow_getattr,
	    .open = slow_open,
	    .read = slow_read,
	    .create = slow_create,
	    .write = slow_write,
	    .truncate = slow_truncate,
	    .release = slow_release,
	    .opendir = slow_opendir,
	    .readdir = slow_readdir,
	    .releasedir = slow_releasedir,
	};
	/* Only root may always let others in. */
	const char *others = geteuid() == 0 ? ",allow_other" : "";
	const char *ro = "";
	char options[64];
	char *fuse_argv[] = {argv[0], "-f", "-o", options, argv[3], NULL};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, SIG_IGN);
	if (argc < 4)
		return 2;
	if (argc > 4)
		max_read = (unsigned)atoi(argv[4]);
	for (int i = 5; i < argc; i++) {
		direct |= strcmp(argv[i], "direct") == 0;
		fresh |= strcmp(argv[i], "fresh") == 0;
		inodes |= strcmp(argv[i], "inodes") == 0;
		no_ctime |= strcmp(argv[i], "mtime") == 0;
		if (strcmp(argv[i], "ro") == 0)
			ro = ",ro";
	}
	snprintf(options, sizeof(options), "max_threads=100%s%s", others, ro);
	if (max_read > 0)
		snprintf(options, sizeof(options),
		    "max_threads=100,max_read=%u%s%s", max_read, others, ro);
	source_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	control_fd = control_listen(argv[2]);
	if (source_fd == -1 || control_fd == -1) {
		perror("slowfs");
		return 1;
	}
	return fuse_main(5, fuse_argv, &operations, NULL);
}
