/*
 * io_uring: the server of epoll.c in a loop of io_uring(7).  Usage: io_uring
 * DIRECTORY PORT. The ring reports which descriptors are ready.  This ring is
 * independent of the rings that the library may have.
 */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"

#define ENTRIES 1024
#define FLAGS	(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)

static struct io_uring ring;
/*
 * The addresses of these variables are the user data of completions that belong
 * to no client.
 */
static char listener_ready, loop_ready;

static struct io_uring_sqe *
entry(void)
{
	struct io_uring_sqe *sqe;

	while ((sqe = io_uring_get_sqe(&ring)) == NULL)
		io_uring_submit(&ring);
	return sqe;
}

/*
 * Polls a descriptor, with one completion for each event.  If a completion
 * lacks IORING_CQE_F_MORE, it is the last one, and the caller must poll again.
 */
static void
watch(int fd, unsigned events, void *whose)
{
	struct io_uring_sqe *sqe = entry();

	io_uring_prep_poll_multishot(sqe, fd, events);
	sqe->user_data = (uintptr_t)whose;
}

static void
watch_client(struct client *c)
{
	watch(c->cl_sock, POLLIN | POLLRDHUP, c);
	c->cl_watches++;
}

/* Polls once for writing.  watch_client polls for requests and closes. */
void
loop_watch(struct client *c, enum client_wants wants)
{
	struct io_uring_sqe *sqe;

	if (wants != CLIENT_WANTS_WRITE && wants != CLIENT_AGAIN)
		return;
	sqe = entry();
	io_uring_prep_poll_add(sqe, c->cl_sock, POLLOUT);
	sqe->user_data = (uintptr_t)c;
	c->cl_watches++;
}

/* Cancels the polls.  on_client frees the client after its last completion. */
void
loop_close(struct client *c)
{
	struct io_uring_sqe *sqe = entry();

	io_uring_prep_cancel64(sqe, (uintptr_t)c, IORING_ASYNC_CANCEL_ALL);
	sqe->user_data = 0;
	c->cl_closed = true;
}

static void
on_client(struct client *c, int result, bool last)
{
	c->cl_watches -= last;
	if (c->cl_closed) {
		if (c->cl_watches == 0) {
			close(c->cl_sock);
			free(c);
		}
		return;
	}
	if (last && (result & POLLIN) != 0)
		watch_client(c);
	if (result < 0 || (result & (POLLERR | POLLHUP | POLLRDHUP)) != 0)
		client_leave(c);
	else
		client_run(c);
}

static void
on_completion(const struct io_uring_cqe *cqe, int listener)
{
	void *whose = (void *)(uintptr_t)cqe->user_data;
	bool last = (cqe->flags & IORING_CQE_F_MORE) == 0;
	struct client *c;

	if (whose == &listener_ready) {
		while ((c = client_accept(listener)) != NULL)
			watch_client(c);
		if (last)
			watch(listener, POLLIN, whose);
	} else if (whose == &loop_ready) {
		pw_loop_drain(clients_loop);
		if (last)
			watch(pw_loop_fd(clients_loop), POLLIN, whose);
	} else if (whose != NULL)
		on_client(whose, cqe->res, last);
}

int
main(int argc, char **argv)
{
	struct __kernel_timespec tick = {.tv_nsec = CLIENTS_TICK * 1000000};
	int listener = clients_start(argc, argv), error;
	struct io_uring_cqe *cqe, copy;

	error = io_uring_queue_init(ENTRIES, &ring, FLAGS);
	if (error == -EINVAL) /* before Linux 6.1 */
		error = io_uring_queue_init(ENTRIES, &ring, 0);
	if (error != 0) {
		fprintf(stderr, "io_uring: %s\n", strerror(-error));
		return 1;
	}
	watch(listener, POLLIN, &listener_ready);
	watch(pw_loop_fd(clients_loop), POLLIN, &loop_ready);
	for (;;) {
		io_uring_submit_and_wait_timeout(&ring, &cqe, 1, &tick, NULL);
		while (io_uring_peek_cqe(&ring, &cqe) == 0) {
			copy = *cqe;
			io_uring_cqe_seen(&ring, cqe);
			on_completion(&copy, listener);
		}
		clients_tick();
	}
}
