/*
 * channel: see channel.h.
 */
#include <sys/socket.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "server/process/channel.h"

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

int
channel_pair(int fds[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1)
		return -errno;
	return 0;
}

static void
channel_attach(struct msghdr *msg, union control *control, int fd)
{
	struct cmsghdr *cmsg;

	msg->msg_control = control;
	msg->msg_controllen = sizeof(control->space);
	cmsg = CMSG_FIRSTHDR(msg);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
}

int
channel_send(
    int channel, enum channel_kind kind, const char *text, int fd, bool wait)
{
	struct channel_message cm = {.cm_kind = kind};
	struct iovec iov = {.iov_base = &cm};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control = {0};
	size_t len = strnlen(text, sizeof(cm.cm_text) - 1);
	ssize_t n;

	memcpy(cm.cm_text, text, len);
	iov.iov_len = offsetof(struct channel_message, cm_text) + len;
	if (fd != -1)
		channel_attach(&msg, &control, fd);
	do
		n = sendmsg(channel, &msg,
		    MSG_NOSIGNAL | MSG_EOR | (wait ? 0 : MSG_DONTWAIT));
	while (n == -1 && errno == EINTR);
	n = n == -1 ? -errno : 0;
	explicit_bzero(&cm, sizeof(cm));
	return (int)n;
}

/*
 * Returns the descriptor of a message, or -1 if there is none.  On Linux, padding leaves space for
 * two descriptors; with less space, FreeBSD would deliver no descriptor.  The sender never sends
 * two, so if two arrive, closes both and returns -1.
 */
static int
channel_attached(struct msghdr *msg)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	size_t i, n;
	int fd = -1;

	if (cmsg == NULL || cmsg->cmsg_level != SOL_SOCKET ||
	    cmsg->cmsg_type != SCM_RIGHTS)
		return -1;
	n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
	for (i = 0; i < n; i++) {
		memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(fd), sizeof(fd));
		if (n > 1)
			close(fd);
	}
	return n == 1 ? fd : -1;
}

int
channel_receive(int channel, struct channel_message *cm, int *fd)
{
	struct iovec iov = {.iov_base = cm, .iov_len = sizeof(*cm) - 1};
	union control control = {0};
	struct msghdr msg = {
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = fd != NULL ? &control : NULL,
	    .msg_controllen = fd != NULL ? sizeof(control.space) : 0,
	};
	ssize_t n;

	if (fd != NULL)
		*fd = -1;
	memset(cm, 0, sizeof(*cm));
	do
		n = recvmsg(channel, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n == -1 && errno == EINTR);
	if (n == -1)
		return errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	if (fd != NULL)
		*fd = channel_attached(&msg);
	return 1;
}
