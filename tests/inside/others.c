/*
 * others: see inside.h.
 */
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "tests/inside/inside.h"

int
inside_fork(struct inside *in)
{
	pid_t pid = fork();

	(void)in;
	if (pid == 0)
		_exit(0);
	return pid != -1 && waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

int
inside_ptrace(struct inside *in)
{
	pid_t parent = getppid();

	(void)in;
	if (ptrace(PTRACE_SEIZE, parent, NULL, NULL) == -1)
		return -1;
	/* Only what has stopped can be let go. */
	ptrace(PTRACE_INTERRUPT, parent, NULL, NULL);
	waitpid(parent, NULL, __WALL);
	return ptrace(PTRACE_DETACH, parent, NULL, NULL) == 0 ? 0 : -1;
}

int
inside_kill(struct inside *in)
{
	(void)in;
	return kill(getppid(), 0);
}

int
inside_tgkill(struct inside *in)
{
	pid_t parent = getppid();

	(void)in;
	return (int)syscall(SYS_tgkill, parent, parent, 0);
}

/* To what it is. */
int
inside_schedule(struct inside *in)
{
	const struct sched_param none = {0};

	(void)in;
	return sched_setscheduler(getppid(), SCHED_OTHER, &none);
}

int
inside_affinity(struct inside *in)
{
	cpu_set_t set;

	(void)in;
	return sched_getaffinity(getppid(), sizeof(set), &set);
}

int
inside_limit(struct inside *in)
{
	struct rlimit rl;

	(void)in;
	return prlimit(getppid(), RLIMIT_CORE, NULL, &rl);
}

static int
with_socket(int (*f)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	int fd, error;

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return -1;
	error =
	    f(fd, (const struct sockaddr *)&sin, sizeof(sin)) == 0 ? 0 : errno;
	close(fd);
	errno = error;
	return error == 0 ? 0 : -1;
}

/* To port 0, where nobody listens: ECONNREFUSED if it may be tried. */
int
inside_connect(struct inside *in)
{
	(void)in;
	return with_socket(connect);
}

int
inside_bind(struct inside *in)
{
	(void)in;
	return with_socket(bind);
}

/* An attacker would shut it down first: then it can connect. */
static int
listening_socket(void)
{
	socklen_t len = sizeof(int);
	int fd, yes = 0;

	for (fd = 0; fd < 1024; fd++)
		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) ==
			0 &&
		    yes != 0)
			return fd;
	return -1;
}

/* connect(2) without connect(2): EISCONN of a socket that listens if it may be tried. */
int
inside_fastopen_to(struct inside *in)
{
	const struct sockaddr_in sin = {.sin_family = AF_INET};

	(void)in;
	return (int)sendto(listening_socket(), "", 1, MSG_FASTOPEN,
	    (const struct sockaddr *)&sin, sizeof(sin));
}

int
inside_fastopen_msg(struct inside *in)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	const struct msghdr msg = {
	    .msg_name = &sin, .msg_namelen = sizeof(sin)};

	(void)in;
	return (int)sendmsg(listening_socket(), &msg, MSG_FASTOPEN);
}

/* The master keeps that socket, and gives it to the next server. */
static int
set_option(int level, int name, int value)
{
	return setsockopt(
	    listening_socket(), level, name, &value, sizeof(value));
}

int
inside_option(struct inside *in)
{
	(void)in;
	return set_option(IPPROTO_IP, IP_TTL, 64);
}

/* Its number is that of SO_LINGER, at another level. */
int
inside_option_twin(struct inside *in)
{
	(void)in;
	return set_option(IPPROTO_IP, SO_LINGER, 0);
}

/* At the level of the other that is let through. */
int
inside_option_tcp(struct inside *in)
{
	(void)in;
	return set_option(IPPROTO_TCP, TCP_NODELAY, 1);
}
