/*
 * limit: the least that a server could do.  One thread waits for events, looks for the
 * end of a request's head, and sends the next of the answers that it prepared, by the
 * system calls that --way names, whatever was asked for.  Nothing is parsed, found,
 * checked, logged or timed: what another server needs more than this is what all of
 * that costs it.  Linux.
 *
 *   send      send(2) of head and body, side by side in memory
 *   sendfile  send(2) of the head, sendfile(2) of the file
 *   memfd     sendfile(2) of head and body, side by side in a memory file
 *
 * Several requests that one recv(2) has brought are answered by one call where the way
 * allows it: send and memfd.
 */
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"

#define EVENTS	 512
#define INPUT	 16384	   /* bytes, of a head at most */
#define TOGETHER 16	   /* answers in one call, of a single file, ... */
#define MEMORY	 (1 << 21) /* ... unless they take more, bytes */

/* As long as that of pagewise, whose ETag has as many digits as it needs. */
#define HEAD                                               \
	"HTTP/1.1 200 OK\r\n"                              \
	"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"          \
	"Server: pagewise\r\n"                             \
	"Content-Type: application/octet-stream\r\n"       \
	"Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\n" \
	"ETag: \"%llx.%lx-%llx\"\r\n"                      \
	"Accept-Ranges: bytes\r\nContent-Length: %zu\r\n\r\n"

enum way { WAY_SEND, WAY_SENDFILE, WAY_MEMFD, WAYS };

static const char *const way_names[WAYS] = {"send", "sendfile", "memfd"};

/* One after the other in memory, which the memory file has as well. */
struct answer {
	size_t a_head, a_body, a_end; /* where they begin and end there */
	int a_fd;		      /* the file; WAY_SENDFILE only */
};

struct answers {
	enum way as_way;
	char *as_mem;
	size_t as_len; /* bytes */
	int as_memfd;
	struct answer *as_list;
	size_t as_n;
	bool as_in_turn; /* else they are one, many times over */
	size_t as_turn;
};

struct conn {
	LIST_ENTRY(conn) c_entry;
	int c_fd;
	bool c_readable;	       /* there may be something to read */
	bool c_ended;		       /* the peer sends no more than that */
	size_t c_due;		       /* answers that were not begun */
	const struct answer *c_answer; /* the first of those that are sent */
	size_t c_at, c_end; /* what is left of these, as in struct answer */
	size_t c_in;	    /* bytes of c_buf: a head that is not complete */
	char c_buf[INPUT];
};

static LIST_HEAD(, conn) conns;

static void
usage(void)
{
	fputs("usage: limit [--way send|sendfile|memfd] [--port N] "
	      "FILE | --files LIST\n",
	    stderr);
	exit(2);
}

/* ------------------------------------------------------------ the answers */

static void
read_all(int fd, const char *path, char *to, size_t len)
{
	ssize_t n;

	for (; len > 0; to += n, len -= (size_t)n) {
		n = read(fd, to, len);
		if (n == -1)
			err(1, "%s", path);
		if (n == 0)
			errx(1, "%s: shorter than it was", path);
	}
}

/* Returns where room for so many bytes more begins. */
static char *
answers_grow(struct answers *as, size_t len)
{
	as->as_mem = realloc(as->as_mem, as->as_len + len + 1);
	if (as->as_mem == NULL)
		err(1, NULL);
	as->as_len += len;
	return as->as_mem + as->as_len - len;
}

static void
answers_add(struct answers *as, const char *path)
{
	struct answer *a;
	struct stat st;
	char head[sizeof(HEAD) + 64];
	size_t body;
	int len, fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd == -1 || fstat(fd, &st) == -1)
		err(1, "%s", path);
	if (!S_ISREG(st.st_mode))
		errx(1, "%s: not a regular file", path);
	as->as_list =
	    reallocarray(as->as_list, as->as_n + 1, sizeof(*as->as_list));
	if (as->as_list == NULL)
		err(1, NULL);
	a = &as->as_list[as->as_n++];
	body = (size_t)st.st_size;
	len = snprintf(head, sizeof(head), HEAD,
	    (unsigned long long)st.st_mtim.tv_sec,
	    (unsigned long)st.st_mtim.tv_nsec, (unsigned long long)body, body);
	*a = (struct answer){as->as_len, as->as_len + (size_t)len, 0, fd};
	memcpy(answers_grow(as, (size_t)len), head, (size_t)len);
	read_all(fd, path, answers_grow(as, body), body);
	a->a_end = as->as_len;
	if (as->as_way != WAY_SENDFILE)
		close(fd);
}

/* Empty lines are left out. */
static void
answers_add_list(struct answers *as, const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	if (f == NULL)
		err(1, "%s", path);
	while ((n = getline(&line, &size, f)) > 0) {
		if (line[n - 1] == '\n')
			line[--n] = '\0';
		if (n > 0)
			answers_add(as, line);
	}
	if (ferror(f))
		err(1, "%s", path);
	free(line);
	fclose(f);
	if (as->as_n == 0)
		errx(1, "%s: names no file", path);
	as->as_in_turn = true;
}

static void
answers_to_memfd(struct answers *as)
{
	size_t done;
	ssize_t n;

	as->as_memfd = memfd_create("answers", MFD_CLOEXEC);
	if (as->as_memfd == -1)
		err(1, "memfd_create");
	for (done = 0; done < as->as_len; done += (size_t)n) {
		n = write(as->as_memfd, as->as_mem + done, as->as_len - done);
		if (n <= 0)
			err(1, "memory file");
	}
}

/* How many are sent by one call, beginning with the one whose turn it is. */
static size_t
answers_take(struct answers *as, size_t due, const struct answer **first)
{
	size_t n = as->as_n - as->as_turn;

	if (as->as_way == WAY_SENDFILE)
		n = 1;
	if (n > due)
		n = due;
	*first = &as->as_list[as->as_turn];
	if (as->as_in_turn)
		as->as_turn = (as->as_turn + n) % as->as_n;
	return n;
}

/* ------------------------------------------------------------ connections */

static void
conn_close(struct conn *c)
{
	LIST_REMOVE(c, c_entry);
	close(c->c_fd);
	free(c);
}

/* Up to end, in one call. */
static ssize_t
conn_send_once(const struct conn *c, const struct answers *as, size_t end)
{
	const struct answer *a = c->c_answer;
	off_t off = (off_t)c->c_at;
	size_t len = end - c->c_at;

	if (as->as_way == WAY_MEMFD)
		return sendfile(c->c_fd, as->as_memfd, &off, len);
	if (as->as_way == WAY_SEND || end == a->a_body)
		return send(c->c_fd, as->as_mem + c->c_at, len,
		    MSG_NOSIGNAL | (end < c->c_end ? MSG_MORE : 0));
	off -= (off_t)a->a_body;
	return sendfile(c->c_fd, a->a_fd, &off, len);
}

/*
 * All that is due.  1: it is sent; 0: the socket is full, as a call has said or has
 * shown by sending less, and an event will come; -1: the connection is over.
 */
static int
conn_send(struct conn *c, struct answers *as)
{
	size_t n, end;
	ssize_t sent;

	while (c->c_at < c->c_end || c->c_due > 0) {
		if (c->c_at == c->c_end) {
			n = answers_take(as, c->c_due, &c->c_answer);
			c->c_due -= n;
			c->c_at = c->c_answer->a_head;
			c->c_end = c->c_answer[n - 1].a_end;
		}
		end = c->c_end;
		if (as->as_way == WAY_SENDFILE && c->c_at < c->c_answer->a_body)
			end = c->c_answer->a_body;
		sent = conn_send_once(c, as, end);
		if (sent == -1 && errno == EAGAIN)
			return 0;
		if (sent <= 0)
			return -1;
		c->c_at += (size_t)sent;
		if (c->c_at < end)
			return 0;
	}
	return 1;
}

/* False: the connection is over. */
static bool
conn_read(struct conn *c)
{
	const char *p = c->c_buf, *end, *last;
	size_t room = INPUT - c->c_in;
	ssize_t n = recv(c->c_fd, c->c_buf + c->c_in, room, 0);

	/* After the last edge it is read up to its end. */
	c->c_readable = c->c_ended || n == (ssize_t)room;
	if (n == -1 && errno == EAGAIN)
		return true;
	if (n <= 0)
		return false;
	c->c_in += (size_t)n;
	last = c->c_buf + c->c_in;
	while ((end = memmem(p, (size_t)(last - p), "\r\n\r\n", 4)) != NULL) {
		p = end + 4;
		c->c_due++;
	}
	c->c_in = (size_t)(last - p);
	if (c->c_in == INPUT)
		return false;
	memmove(c->c_buf, p, c->c_in);
	return true;
}

/* Edges are waited for: a descriptor is named to epoll once. */
static void
conn_event(struct conn *c, struct answers *as, uint32_t events)
{
	int done;

	if (events & ~(uint32_t)EPOLLOUT)
		c->c_readable = true;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		c->c_ended = true;
	for (;;) {
		done = conn_send(c, as);
		if (done == 0 || (done == 1 && !c->c_readable))
			return;
		if (done == -1 || !conn_read(c))
			break;
	}
	conn_close(c);
}

static void
accept_one(int epoll, int listener)
{
	struct epoll_event ev = {
	    .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
	struct conn *c;
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd == -1)
		return;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		err(1, NULL);
	LIST_INSERT_HEAD(&conns, c, c_entry);
	c->c_fd = fd;
	ev.data.ptr = c;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) == -1)
		err(1, "epoll_ctl");
}

/* --------------------------------------------------------------- the loop */

static int
listen_on(unsigned port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
	    .sin_port = htons((in_port_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	int on = 1,
	    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd == -1)
		err(1, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&addr, len) == -1 ||
	    listen(fd, 4096) == -1 ||
	    getsockname(fd, (struct sockaddr *)&addr, &len) == -1)
		err(1, "port %u", port);
	printf("http://127.0.0.1:%u/\n", ntohs(addr.sin_port));
	fflush(stdout);
	return fd;
}

/*
 * Readable when the process is told to end: a handler could run just too early.  Made
 * before anybody knows the address.
 */
static int
signals_fd(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd == -1)
		err(1, "signalfd");
	return fd;
}

static void
watch(int epoll, int *fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = fd};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, *fd, &ev) == -1)
		err(1, "epoll_ctl");
}

static void
serve(int signals, int listener, struct answers *as)
{
	struct epoll_event evs[EVENTS];
	int i, n, epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll == -1)
		err(1, "epoll");
	watch(epoll, &listener);
	watch(epoll, &signals);
	for (;;) {
		n = epoll_wait(epoll, evs, EVENTS, -1);
		if (n == -1 && errno != EINTR)
			err(1, "epoll_wait");
		for (i = 0; i < n; i++) {
			if (evs[i].data.ptr == &signals)
				return;
			if (evs[i].data.ptr == &listener)
				accept_one(epoll, listener);
			else
				conn_event(evs[i].data.ptr, as, evs[i].events);
		}
	}
}

static enum way
way_of(const char *name)
{
	int way;

	for (way = 0; way < WAYS; way++)
		if (strcmp(way_names[way], name) == 0)
			return (enum way)way;
	errx(2, "--way %s: there are send, sendfile and memfd", name);
}

static unsigned
parse(struct answers *as, int argc, char **argv)
{
	static const struct option options[] = {{"way", 1, NULL, 'w'},
	    {"port", 1, NULL, 'p'}, {"files", 1, NULL, 'f'}, {0}};
	const char *list = NULL;
	unsigned port = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'w')
			as->as_way = way_of(optarg);
		else if (c == 'p')
			port =
			    (unsigned)client_number("port", optarg, 0, 65535);
		else if (c == 'f')
			list = optarg;
		else
			usage();
	}
	if (argc - optind != (list == NULL))
		usage();
	if (list != NULL)
		answers_add_list(as, list);
	else
		do
			answers_add(as, argv[optind]);
		while (as->as_way != WAY_SENDFILE && as->as_n < TOGETHER &&
		       as->as_len < MEMORY);
	return port;
}

int
main(int argc, char **argv)
{
	struct rlimit files;
	struct answers as = {.as_way = WAY_MEMFD};
	unsigned port;
	int signals;

	signal(SIGPIPE, SIG_IGN);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	port = parse(&as, argc, argv);
	if (as.as_way == WAY_MEMFD)
		answers_to_memfd(&as);
	signals = signals_fd();
	serve(signals, listen_on(port), &as);
	while (!LIST_EMPTY(&conns))
		conn_close(LIST_FIRST(&conns));
	free(as.as_mem);
	free(as.as_list);
	return 0;
}
