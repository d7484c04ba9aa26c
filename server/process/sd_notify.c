/*
 * sd_notify: see sd_notify.h.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/process/sd_notify.h"

/*
 * Parses NOTIFY_SOCKET: a path, or an abstract Linux name with '@' instead of the NUL.  Returns the
 * length of the address, or 0 if the variable is unset or invalid.
 */
static socklen_t
sd_notify_address(struct sockaddr_un *un)
{
	const char *name = getenv("NOTIFY_SOCKET");
	size_t len = name == NULL ? 0 : strlen(name);

	if (len == 0 || len >= sizeof(un->sun_path) ||
	    (name[0] != '/' && name[0] != '@'))
		return 0;
	*un = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(un->sun_path, name, len);
	if (name[0] == '@')
		un->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

void
sd_notify_send(const char *fmt, ...)
{
	struct sockaddr_un un;
	socklen_t addrlen = sd_notify_address(&un);
	char text[1024];
	va_list ap;
	int fd, len;

	if (addrlen == 0)
		return;
	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return;
	if (len > 0)
		(void)sendto(fd, text, strlen(text),
		    MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&un,
		    addrlen);
	close(fd);
}

void
sd_notify_status(const char *text)
{
	char line[512];
	size_t i;

	for (i = 0; i < sizeof(line) - 1 && text[i] != '\0'; i++)
		if (text[i] < ' ' || text[i] == 0x7f)
			line[i] = '?';
		else
			line[i] = text[i];
	line[i] = '\0';
	sd_notify_send("STATUS=%s", line);
}

void
sd_notify_reloading(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	sd_notify_send("RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=reloading",
	    (unsigned long long)ts.tv_sec * 1000000 +
		(unsigned long long)ts.tv_nsec / 1000);
}

uint64_t
sd_notify_watchdog(void)
{
	const char *pid = getenv("WATCHDOG_PID");
	const char *period = getenv("WATCHDOG_USEC");

	if (period == NULL ||
	    (pid != NULL && strtoull(pid, NULL, 10) != (uint64_t)getpid()))
		return 0;
	return strtoull(period, NULL, 10);
}
