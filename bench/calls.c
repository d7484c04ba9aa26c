/*
 * calls: sends a file that is in memory COUNT times, as a program in C does, to count what a request costs beside the
 * crate for Rust (its example calls).  Each request opens the file, sends it to a socket, and reads it from the other
 * end.  Usage: calls DIRECTORY NAME COUNT
 */
#include <sys/socket.h>

#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/pagewise.h"

#define HEAD  "HTTP/1.1 200 OK\r\nServer: calls\r\n\r\n"
#define DRAIN 128 /* requests between two drains of the loop, as tokio yields */

static struct pw_loop *loop;
static struct pw_root *root;
static bool done;

static void
on_open(struct pw_waiter *w)
{
	(void)w;
	done = true;
}

static void
on_sent(struct pw_send *s)
{
	(void)s;
	done = true;
}

static void
wait_for_disk(void)
{
	struct pollfd pfd = {.fd = pw_loop_fd(loop), .events = POLLIN};

	for (done = false; !done;) {
		poll(&pfd, 1, -1);
		pw_loop_drain(loop);
	}
}

static void
check(const char *what, int error)
{
	if (error < 0)
		errx(1, "%s: %s", what, strerror(-error));
}

static struct pw_file *
open_file(const char *name)
{
	struct pw_open op = {.op_waiter.wt_done = on_open};
	int error = pw_file_open(loop, root, name, pw_now(), &op);

	if (error == -EINPROGRESS) {
		wait_for_disk();
		error = op.op_waiter.wt_error;
	}
	check(name, error);
	return op.op_file;
}

/* Returns the number of bytes. */
static uint64_t
send_file(int sock, struct pw_file *file)
{
	struct pw_send s = {.snd_path = pw_send_default(),
	    .snd_loop = loop,
	    .snd_sock = sock,
	    .snd_mem = HEAD,
	    .snd_mem_len = sizeof(HEAD) - 1,
	    .snd_file = file,
	    .snd_len = file->fil_size,
	    .snd_done = on_sent};
	enum pw_send_status status;

	check("pw_send_start", pw_send_start(&s));
	while ((status = pw_send_step(&s)) != PW_SEND_DONE)
		if (status == PW_SEND_PENDING)
			wait_for_disk();
		else if (status != PW_SEND_AGAIN)
			errx(1, "the file does not fit into the socket");
	pw_send_finish(&s);
	return s.snd_sent;
}

static void
connect_pair(int pair[2])
{
	struct sockaddr_in sin = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sin);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	pair[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&sin, len) != 0 ||
	    listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)&sin, &len) != 0 ||
	    connect(pair[1], (struct sockaddr *)&sin, len) != 0)
		err(1, "loopback");
	pair[0] = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	close(listener);
}

int
main(int argc, char **argv)
{
	static char bytes[1 << 20];
	struct pw_pool *pool;
	struct pw_file *file;
	uint64_t left;
	ssize_t n;
	long i, count = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
	int pair[2];

	if (count <= 0)
		errx(2, "usage: calls DIRECTORY NAME COUNT");
	check("pool", pw_pool_create(NULL, &pool));
	check("loop", pw_loop_create(pool, NULL, &loop));
	check(argv[1], pw_root_open(argv[1], &root));
	connect_pair(pair);
	for (i = 0; i < count; i++) {
		file = open_file(argv[2]);
		left = send_file(pair[0], file);
		pw_file_unref(&file);
		for (; left > 0; left -= (uint64_t)n)
			if ((n = read(pair[1], bytes, left)) <= 0)
				err(1, "read");
		if (i % DRAIN == 0) {
			pw_loop_drain(loop);
			pw_loop_tick(loop, pw_now());
		}
	}
	return 0;
}
