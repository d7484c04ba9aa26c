/*
 * client: requests of clients, how they read, and the checks of what arrives.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/scene.h"

#define BOUND \
	(40 * \
	    SECOND) /* in which a client that reads gets bytes, if its disk works */

struct client clients[CLIENTS_MAX];
struct pw_root *roots[DISKS_MAX];

/* ------------------------------------------------------------------- reading */

static void
client_leave(struct client *c)
{
	if (c->cl_hangs_up || c->cl_sock == -1)
		return;
	story("client %u leaves after %llu bytes", c->cl_number,
	    (unsigned long long)c->cl_read);
	covered("client   leaves");
	c->cl_hangs_up = true;
	sock_reset(sock_of(c->cl_sock));
	world_wake(c->cl_app, TASKS_MAX);
}

static uint64_t
client_pause(struct client *c)
{
	switch (c->cl_reader) {
	case READ_FAST:
		return world_between(20 * US, 500 * US);
	case READ_SLOW:
		return world_between(10 * MS, 200 * MS);
	case READ_BURSTS:
		return world_between(100 * MS, 2 * SECOND);
	case READ_STALLS:
		c->cl_stalls = world_once_in(20);
		return c->cl_stalls ? world_between(3 * SECOND, 15 * SECOND)
				    : world_between(MS, 20 * MS);
	default:
		return 60 * SECOND;
	}
}

static void client_queued(void *);

static void
client_read(void *arg)
{
	struct client *c = arg;
	unsigned most =
	    c->cl_reader == READ_SLOW ? world_below(65536) + 1 : UINT32_MAX;

	c->cl_reading = false;
	if (c->cl_sock == -1 || c->cl_hangs_up)
		return;
	if (c->cl_reader == READ_NEVER) {
		client_leave(c);
		return;
	}
	c->cl_stalls = false;
	c->cl_progress = world_now;
	c->cl_read += sock_read(sock_of(c->cl_sock), most);
	if (c->cl_read >= c->cl_resets_at)
		client_leave(c);
	else if (sock_queued(sock_of(c->cl_sock)) > 0)
		client_queued(c);
}

static void
client_queued(void *arg)
{
	struct client *c = arg;

	if (c->cl_reading)
		return;
	c->cl_reading = true;
	world_at(world_now + client_pause(c), client_read, c);
}

/* As epoll with EPOLLET: the loop takes the event in its next iteration, and it does not come again. */
static void
client_writable(void *arg)
{
	struct client *c = arg;

	c->cl_event = true;
	world_wake(c->cl_app, TASKS_MAX);
}

/* ------------------------------------------------------------------ checking */

static unsigned served; /* responses whose first byte was sent */

/*
 * In worlds of QUEUES, where nothing fails: first windows wait for those before them and for those that run, and
 * not for the next windows of downloads.
 */
static void
client_got_first(const struct client *c)
{
	const struct disk *di = &disks[c->cl_disk];
	uint64_t window = 24 * di->di_latency + 512 * di->di_page;
	unsigned i, before = served++ - c->cl_served;

	if (plan.pl_flavour != QUEUES)
		return;
	for (i = 0; i < plan.pl_clients; i++)
		before +=
		    clients[i].cl_doing == OPENING ||
		    (clients[i].cl_doing == PENDING && clients[i].cl_got == 0);
	if (world_now >
	    c->cl_asked + SECOND + (before + plan.pl_threads + 3) * window)
		world_fail("client %u waited %.1f s for the first byte, which "
			   "is longer than %u first windows before it take",
		    c->cl_number, (double)(world_now - c->cl_asked) / 1e9,
		    before);
}

/* In worlds of STALLED, those who read do not wait a second for each window for long. */
static void
client_waited(struct client *c)
{
	if (plan.pl_flavour != STALLED)
		return;
	if (world_now < c->cl_began + 900 * MS)
		c->cl_waits_long = 0;
	else if (++c->cl_waits_long > 12)
		world_fail("client %u waited a second for each of %u windows: "
			   "stalled clients hold the budget",
		    c->cl_number, c->cl_waits_long);
}

static void
client_is_too_much(const struct client *c, size_t len)
{
	if (c->cl_got + len > c->cl_head_len + (uint64_t)c->cl_len)
		world_fail(
		    "client %u gets more than it asked for", c->cl_number);
}

/* Checks bytes of the file in memory, which may be of any version. */
static void
client_check_page(struct client *c, off_t off, const char *mem, size_t len)
{
	const struct inode *in = c->cl_inode;
	off_t page = off / PAGE;
	unsigned v, at = (unsigned)(off % PAGE);
	uint32_t wanted = inode_version_at(in, page, c->cl_version);

	if (memcmp(mem, inode_bytes(in, page, wanted) + at, len) == 0)
		return;
	c->cl_mixed = true;
	for (v = 0; v <= in->in_version; v++)
		if (memcmp(mem, inode_bytes(in, page, v) + at, len) == 0)
			return;
	world_fail("client %u got bytes at %lld that file %llu never had there",
	    c->cl_number, (long long)off, (unsigned long long)in->in_number);
}

static void
client_got_memory(void *arg, const char *mem, size_t len)
{
	struct client *c = arg;
	size_t n;
	off_t off;

	client_is_too_much(c, len);
	if (c->cl_got == 0)
		client_got_first(c);
	for (; len > 0; mem += n, len -= n, c->cl_got += n) {
		if (c->cl_got < c->cl_head_len) {
			n = c->cl_head_len - c->cl_got;
			if (n > len)
				n = len;
			if (memcmp(mem, c->cl_head + c->cl_got, n) != 0)
				world_fail(
				    "client %u got a wrong head", c->cl_number);
			continue;
		}
		off = c->cl_from + (off_t)(c->cl_got - c->cl_head_len);
		n = PAGE - (size_t)(off % PAGE);
		if (n > len)
			n = len;
		client_check_page(c, off, mem, n);
		shared->sh_bytes += n;
	}
	c->cl_progress = world_now;
}

static void
client_got_page(
    void *arg, const struct inode *in, off_t off, size_t len, uint32_t version)
{
	struct client *c = arg;

	client_is_too_much(c, len);
	if (c->cl_got == 0)
		client_got_first(c);
	if (c->cl_got < c->cl_head_len)
		world_fail(
		    "client %u got the file before the head", c->cl_number);
	if (in != c->cl_inode ||
	    off != c->cl_from + (off_t)(c->cl_got - c->cl_head_len))
		world_fail("client %u got bytes at %lld of file %llu, not "
			   "those at %lld",
		    c->cl_number, (long long)off,
		    (unsigned long long)in->in_number,
		    (long long)c->cl_from +
			(long long)(c->cl_got - c->cl_head_len));
	if (version != inode_version_at(in, off / PAGE, c->cl_version))
		c->cl_mixed = true;
	c->cl_got += len;
	shared->sh_bytes += len;
	c->cl_progress = world_now;
}

static const struct sock_end client_end_ops = {
    .se_memory = client_got_memory,
    .se_page = client_got_page,
    .se_queued = client_queued,
    .se_writable = client_writable,
};

/*
 * Adds to BOUND a window of each client, and one that is reclaimed while it is read, so that it is read page by
 * page.
 */
static uint64_t
client_bound(const struct disk *di)
{
	return BOUND + (512 + 48 * (uint64_t)plan.pl_clients) * di->di_latency;
}

void
clients_leave(void)
{
	unsigned i;

	for (i = 0; i < plan.pl_clients; i++)
		if (clients[i].cl_doing == AWAY)
			clients[i].cl_hangs_up = true;
		else
			client_leave(&clients[i]);
}

void
clients_check_progress(void)
{
	unsigned i;
	const struct client *c;
	const struct disk *di;
	uint64_t since;

	for (i = 0; i < plan.pl_clients; i++) {
		c = &clients[i];
		if (c->cl_doing == AWAY || c->cl_doing == GONE ||
		    c->cl_stalls || c->cl_hangs_up ||
		    c->cl_reader == READ_NEVER)
			continue;
		di = &disks[c->cl_disk];
		since = c->cl_progress;
		if (di->di_hung > since)
			since = di->di_hung;
		if (di->di_ill > since)
			since = di->di_ill;
		if (world_now > since + client_bound(di))
			world_fail(
			    "client %u reads, its disk works, and it got "
			    "nothing for %llu s (%s, after %llu bytes)",
			    c->cl_number, (unsigned long long)(BOUND / SECOND),
			    c->cl_doing == OPENING   ? "opening"
			    : c->cl_doing == PENDING ? "pending"
			    : c->cl_doing == FULL    ? "socket full"
						     : "running",
			    (unsigned long long)c->cl_got);
	}
}

/* --------------------------------------------------------------------- sinks */

static struct client *
client_of_sink(struct pw_sink *sk)
{
	return (struct client *)(void *)((char *)sk -
					 offsetof(struct client, cl_sink));
}

static int
client_sink_take(
    struct pw_sink *sk, const char *mem, size_t len, bool more, size_t *taken)
{
	ssize_t n = __wrap_send(client_of_sink(sk)->cl_sock, mem,
	    world_once_in(4) ? (len + 1) / 2 : len, 0);

	(void)more;
	*taken = n > 0 ? (size_t)n : 0;
	return n > 0 ? 0 : -errno;
}

static long
client_sink_unacked(struct pw_sink *sk)
{
	if (client_of_sink(sk)->cl_sock == -1)
		world_fail("client %u: the sink is asked although it was taken "
			   "back",
		    client_of_sink(sk)->cl_number);
	return (long)sock_queued(sock_of(client_of_sink(sk)->cl_sock));
}

static int
client_sink_range(
    struct pw_sink *sk, off_t off, size_t len, bool more, size_t *taken)
{
	struct client *c = client_of_sink(sk);
	ssize_t n = __wrap_sendfile(c->cl_sock, c->cl_file->fil_fd, &off, len);

	(void)more;
	*taken = n > 0 ? (size_t)n : 0;
	return n > 0 ? 0 : n == 0 ? -ESTALE : -errno;
}

static char *
client_sink_room(struct pw_sink *sk, size_t *room)
{
	struct client *c = client_of_sink(sk);

	if (c->cl_room == NULL)
		c->cl_room = malloc(65536);
	*room = 65536;
	return c->cl_room;
}

static const struct pw_sink_ops sink_ops[SINKS] = {
    [SINK_TAKE] = {.take = client_sink_take, .unacked = client_sink_unacked},
    [SINK_RANGE] = {.take = client_sink_take,
	.unacked = client_sink_unacked,
	.take_range = client_sink_range},
    [SINK_ROOM] = {.take = client_sink_take,
	.unacked = client_sink_unacked,
	.room = client_sink_room},
};

/* ------------------------------------------------------------------ requests */

static void
client_close(struct client *c)
{
	if (c->cl_sock != -1)
		sock_close(sock_of(c->cl_sock));
	c->cl_sock = -1;
	c->cl_doing = GONE;
	free(c->cl_room);
	c->cl_room = NULL;
	story("client %u is gone", c->cl_number);
}

/* Ends a request: the next one follows on the connection, or the client goes. */
static void
client_next(struct client *c, bool closes)
{
	pw_file_unref(&c->cl_file);
	if (closes || c->cl_hangs_up || --c->cl_requests == 0) {
		client_close(c);
		return;
	}
	c->cl_doing = AWAY;
	c->cl_arrives =
	    world_now + (world_once_in(3) ? world_between(0, 2 * SECOND) : 0);
}

static bool
client_may_fail(int error)
{
	switch (error) {
	case -ESTALE:
		return has_fault(FAULT_WRITERS);
	case -EIO:
		return has_fault(FAULT_ERRORS);
	case -EAGAIN:
		return plan.pl_queue != 0 || has_fault(FAULT_MEMORY);
	case -ENOMEM:
	case -ENOBUFS:
		return has_fault(FAULT_MEMORY);
	default:
		return false;
	}
}

static void
client_end(struct client *c, int error)
{
	story("client %u: the response ends: %s", c->cl_number,
	    error == 0 ? "complete" : strerror(-error));
	/* A socket whose client leaves during a call may accept what it then forgets. */
	if (error == 0 && !c->cl_hangs_up &&
	    c->cl_got != c->cl_head_len + (uint64_t)c->cl_len)
		world_fail("client %u: the response is complete, with %llu of "
			   "%llu bytes",
		    c->cl_number, (unsigned long long)c->cl_got,
		    (unsigned long long)c->cl_head_len +
			(unsigned long long)c->cl_len);
	if (error == 0 && c->cl_mixed)
		world_fail("client %u got a complete response with bytes of "
			   "two versions",
		    c->cl_number);
	if (error != 0 && !c->cl_hangs_up && !c->cl_cancelled &&
	    !client_may_fail(error))
		world_fail(
		    "client %u: the transmission fails without a cause: %s",
		    c->cl_number, strerror(-error));
	covered("ends     %s", error == 0 ? "complete" : strerror(-error));
	pw_send_finish(&c->cl_send);
	client_next(c, error != 0);
}

static void
client_sent(struct pw_send *s)
{
	struct client *c =
	    (struct client *)(void *)((char *)s -
				      offsetof(struct client, cl_send));

	if (c->cl_doing == LEFT) {
		pw_send_finish(s);
		client_next(c, true);
	} else {
		client_waited(c);
		c->cl_doing = RUNS;
	}
}

static const char *const path_names[] = {"nodiskio", "splice", "mlock", "aio",
    "pool", "uring", "ring", "blocking", "copy"};

static unsigned
client_path(void)
{
	unsigned i, tries;

	for (tries = 0; tries < 20; tries++) {
		i = world_once_in(2) ? 0 : world_below(COUNT(path_names));
		if ((plan.pl_paths >> i & 1) != 0)
			return i;
	}
	return 0;
}

/* Returns true if the loop may wait for the disk on this path: docs/send-paths.md. */
static bool
client_may_wait(const struct client *c)
{
	return strcmp(path_names[c->cl_path], "blocking") == 0 ||
	       strcmp(path_names[c->cl_path], "copy") == 0;
}

/* Copies bytes of the file on the loop, as a program does for the last bytes of a response. */
static void
client_copy(struct client *c)
{
	char bytes[PAGE];
	size_t n = (size_t)(PAGE - c->cl_from % PAGE);

	if (n > (size_t)c->cl_len)
		n = (size_t)c->cl_len;
	if (pw_file_copy(c->cl_file, c->cl_from, bytes, n) != 0)
		return;
	covered("copy     of resident bytes");
	client_check_page(c, c->cl_from, bytes, n);
	if (c->cl_mixed)
		world_fail("pw_file_copy copies bytes of another version");
}

static void
client_start(struct client *c)
{
	static const uint64_t readahead[] = {PW_READAHEAD_AUTO,
	    PW_READAHEAD_AUTO, PW_READAHEAD_AUTO, PW_READAHEAD_NONE, 256 << 10};
	struct pw_send *s = &c->cl_send;
	off_t size = c->cl_file->fil_size;

	c->cl_inode = &inodes[c->cl_file->fil_ino - 1000];
	c->cl_version = (unsigned)c->cl_file->fil_mtime.tv_nsec;
	c->cl_from = world_once_in(3) ? (off_t)world_below((unsigned)size) : 0;
	c->cl_len = world_once_in(3)
			? 1 + (off_t)world_below((unsigned)(size - c->cl_from))
			: size - c->cl_from;
	c->cl_head_len = 1 + world_below(HEAD_MAX);
	memset(c->cl_head, 'a' + (int)(c->cl_number % 26), c->cl_head_len);
	c->cl_mixed = false;
	c->cl_progress = world_now;
	c->cl_path = client_path();
	*s = (struct pw_send){.snd_path = pw_send_path(path_names[c->cl_path]),
	    .snd_loop = c->cl_app->al_loop,
	    .snd_sock = c->cl_sock,
	    .snd_mem = c->cl_head,
	    .snd_mem_len = c->cl_head_len,
	    .snd_file = c->cl_file,
	    .snd_off = c->cl_from,
	    .snd_len = c->cl_len,
	    .snd_index = world_once_in(2),
	    .snd_readahead = readahead[world_below(COUNT(readahead))],
	    .snd_cache = (enum pw_cache)world_one_of(plan.pl_caches, 3),
	    .snd_done = client_sent};
	/* A program whose sendfile(2) is refused offers to take memory alone. */
	if (c->cl_sinks == SINK_RANGE && disks[c->cl_disk].di_copies)
		c->cl_sinks = SINK_TAKE;
	c->cl_sink.sk_ops = &sink_ops[c->cl_sinks];
	if (c->cl_sinks != SINK_NONE)
		s->snd_sink = &c->cl_sink;
	if (pw_send_start(s) != 0)
		world_fail("pw_send_start fails: %s", strerror(-s->snd_error));
	story("client %u: file %llu [%lld, %lld), %s, sink %d, cache %d",
	    c->cl_number, (unsigned long long)c->cl_file->fil_ino,
	    (long long)c->cl_from, (long long)(c->cl_from + c->cl_len),
	    path_names[c->cl_path], (int)c->cl_sinks, (int)s->snd_cache);
	c->cl_doing = RUNS;
	if (world_once_in(4))
		client_copy(c);
}

static void
client_opened(struct pw_waiter *w)
{
	struct client *c =
	    (struct client *)(void *)((char *)w - offsetof(struct client,
						      cl_open.op_waiter));

	c->cl_file = c->cl_open.op_file;
	if (w->wt_error == 0 && !c->cl_hangs_up) {
		client_start(c);
		return;
	}
	covered("open     %s", strerror(-w->wt_error));
	if (w->wt_error != 0 && !client_may_fail(w->wt_error))
		world_fail("an open fails without a cause: %s",
		    strerror(-w->wt_error));
	client_next(c, true);
}

/* Chooses a file.  In worlds of QUEUES a client has either small files or downloads. */
static unsigned
client_name(const struct client *c, const struct disk *di)
{
	unsigned name, tries;

	if (plan.pl_flavour != QUEUES)
		return plan.pl_flavour != DROPS && world_once_in(2)
			   ? 0
			   : world_below(di->di_nnames);
	for (tries = 0; tries < 50; tries++) {
		name = world_below(di->di_nnames);
		if ((inodes[di->di_names[name].na_inode].in_size > 1 << 20) ==
		    (c->cl_number % 3 > 0))
			break;
	}
	return name;
}

static void
client_request(struct client *c)
{
	const struct disk *di;
	unsigned name;
	int error;

	if (c->cl_sock == -1)
		c->cl_sock = sock_open(sock_create(&client_end_ops, c,
		    world_once_in(2) ? 4 << 20
				     : (unsigned)world_between(8192, 300000)));
	c->cl_disk = world_below(plan.pl_disks);
	di = &disks[c->cl_disk];
	name = client_name(c, di);
	c->cl_open = (struct pw_open){.op_waiter.wt_done = client_opened,
	    .op_waiter.wt_client = (c->cl_number + 1) << 12};
	c->cl_progress = c->cl_asked = world_now;
	c->cl_got = 0;
	c->cl_served = served;
	story("client %u opens %s of disk %u", c->cl_number,
	    di->di_names[name].na_text, c->cl_disk);
	error = pw_file_open(c->cl_app->al_loop, roots[c->cl_disk],
	    di->di_names[name].na_text, pw_now(), &c->cl_open);
	c->cl_doing = OPENING;
	if (error == -EINPROGRESS)
		return;
	c->cl_open.op_waiter.wt_error = error;
	client_opened(&c->cl_open.op_waiter);
}

static void
client_step(struct client *c)
{
	struct pw_send *s = &c->cl_send;
	enum pw_send_status status;

	*task_step() = client_may_wait(c) ? NEVER : world_now;
	s->snd_limit = world_once_in(4) ? world_between(1, 200000) : 0;
	status = pw_send_step(s);
	*task_step() = world_now;
	covered("path     %s %s", path_names[c->cl_path],
	    status == PW_SEND_DONE	   ? "done"
	    : status == PW_SEND_WANT_WRITE ? "full"
	    : status == PW_SEND_AGAIN	   ? "again"
	    : status == PW_SEND_PENDING	   ? "pending"
					   : "error");
	c->cl_began = world_now;
	if (status == PW_SEND_PENDING)
		c->cl_doing = PENDING;
	else if (status == PW_SEND_WANT_WRITE)
		c->cl_doing = FULL;
	else if (status == PW_SEND_DONE || status == PW_SEND_ERROR)
		client_end(c, status == PW_SEND_DONE ? 0 : s->snd_error);
}

/* The program notices that the client has gone. */
static void
client_abort(struct client *c)
{
	c->cl_cancelled = true;
	switch (c->cl_doing) {
	case OPENING:
		if (pw_open_cancel(&c->cl_open) != 0)
			world_fail("an open cannot be cancelled");
		client_next(c, true);
		break;
	case PENDING:
		pw_send_cancel(&c->cl_send);
		if (pw_send_take_back(&c->cl_send)) {
			sock_close(sock_of(c->cl_sock));
			c->cl_sock = -1;
		}
		c->cl_doing = LEFT;
		break;
	case RUNS:
	case FULL:
		pw_send_cancel(&c->cl_send);
		pw_send_finish(&c->cl_send);
		client_next(c, true);
		break;
	case AWAY:
		client_close(c);
		break;
	default:
		break;
	}
}

bool
client_run(struct client *c)
{
	*task_step() = world_now;
	if (c->cl_event && c->cl_doing == FULL)
		c->cl_doing = RUNS;
	c->cl_event = false;
	if (c->cl_hangs_up && c->cl_doing != LEFT && c->cl_doing != GONE)
		client_abort(c);
	else if (c->cl_doing == AWAY && c->cl_arrives <= world_now)
		client_request(c);
	else if (c->cl_doing == RUNS)
		client_step(c);
	return c->cl_doing == RUNS ||
	       (c->cl_doing == AWAY && c->cl_arrives <= world_now);
}

void
client_draw(struct client *c, unsigned number, struct app_loop *al)
{
	*c = (struct client){.cl_number = number,
	    .cl_app = al,
	    .cl_sock = -1,
	    .cl_requests = 1 + world_below(plan.pl_requests),
	    .cl_reader = (enum reader)world_one_of(plan.pl_readers, 3),
	    .cl_arrives = world_now + world_between(0, 5 * SECOND),
	    .cl_resets_at = NEVER};
	if (has_fault(FAULT_STALLS) &&
	    (plan.pl_flavour == STALLED ? number % 2 == 0 : world_once_in(3)))
		c->cl_reader = plan.pl_flavour != STALLED && world_once_in(2)
				   ? READ_STALLS
				   : READ_NEVER;
	if (has_fault(FAULT_RESETS) && world_once_in(3))
		c->cl_resets_at = world_between(0, 8 << 20);
	c->cl_sinks = (enum sink)world_one_of(plan.pl_sinks, SINKS);
}
