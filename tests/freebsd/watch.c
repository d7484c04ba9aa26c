/*
 * watch: see watch.h.
 */
#include <sys/param.h>
#include <sys/capsicum.h>
#include <sys/socket.h>
#include <sys/sysctl.h>
#include <sys/user.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/freebsd/watch.h"

#define PLACES 256

static struct place {
	char pl_thread[TDNAMLEN + 1];
	char pl_channel[WMESGLEN + 1];
	unsigned pl_times;
} places[PLACES];
static size_t nplaces;

/* Reads a list of sysctl(3) that may grow meanwhile.  Returns NULL on an error; the caller frees it. */
static void *
watch_read(const int *name, unsigned len, size_t *size)
{
	void *list = NULL;

	*size = 0;
	if (sysctl(name, len, NULL, size, NULL, 0) == -1)
		return NULL;
	*size += *size / 2 + 65536;
	list = malloc(*size);
	if (list != NULL && sysctl(name, len, list, size, NULL, 0) == 0)
		return list;
	free(list);
	return NULL;
}

static struct kinfo_proc *
watch_processes(int what, int arg, size_t *n)
{
	const int name[] = {CTL_KERN, KERN_PROC, what, arg};
	struct kinfo_proc *list = watch_read(name, nitems(name), n);

	*n = list == NULL ? 0 : *n / sizeof(*list);
	return list;
}

pid_t
watch_server(pid_t master)
{
	size_t n;
	struct kinfo_proc *list = watch_processes(KERN_PROC_PROC, 0, &n);
	pid_t newest = 0;
	struct timeval at = {0};

	for (size_t i = 0; i < n; i++) {
		if (list[i].ki_ppid != master || list[i].ki_stat == SZOMB ||
		    timercmp(&list[i].ki_start, &at, <))
			continue;
		newest = list[i].ki_pid;
		at = list[i].ki_start;
	}
	free(list);
	return newest;
}

bool
watch_is_confined(pid_t pid)
{
	size_t n;
	struct kinfo_proc *list = watch_processes(KERN_PROC_PID, pid, &n);
	bool yes = n > 0 && (list[0].ki_cr_flags & KI_CRF_CAPABILITY_MODE) != 0;

	free(list);
	return yes;
}

/* Returns a right that the server does not need, or NULL. */
static const char *
watch_spare_right(const struct kinfo_file *kf)
{
	const cap_rights_t *have = &kf->kf_cap_rights;

	if (cap_rights_is_set(have, CAP_FCHMOD) ||
	    cap_rights_is_set(have, CAP_FCHFLAGS))
		return "CAP_FCHMOD or CAP_FCHFLAGS";
	if (cap_rights_is_set(have, CAP_BIND) ||
	    cap_rights_is_set(have, CAP_CONNECT))
		return "CAP_BIND or CAP_CONNECT";
	if (kf->kf_type == KF_TYPE_VNODE && cap_rights_is_set(have, CAP_READ))
		return "CAP_READ";
	return NULL;
}

int
watch_rights(pid_t pid, int *seen)
{
	const int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_FILEDESC, pid};
	size_t size;
	char *list = watch_read(name, nitems(name), &size), *at = list;
	const struct kinfo_file *kf;
	const char *right;
	int wrong = 0;

	*seen = 0;
	if (list == NULL)
		return -1;
	for (; at < list + size; at += kf->kf_structsize) {
		kf = (const struct kinfo_file *)(void *)at;
		if (kf->kf_structsize == 0)
			break;
		if (kf->kf_fd <= STDERR_FILENO ||
		    (kf->kf_type != KF_TYPE_SOCKET &&
			(kf->kf_type != KF_TYPE_VNODE ||
			    (kf->kf_flags & KF_FLAG_WRITE) == 0 ||
			    strcmp(kf->kf_path, "/dev/null") == 0)))
			continue;
		++*seen;
		right = watch_spare_right(kf);
		if (right == NULL)
			continue;
		wrong++;
		printf("# descriptor %d (type %d, %s) has %s\n", kf->kf_fd,
		    kf->kf_type, kf->kf_path, right);
	}
	free(list);
	return wrong;
}

void
watch_forget(void)
{
	nplaces = 0;
}

static void
watch_note(const char *thread, const char *channel)
{
	struct place *pl;

	for (pl = places; pl < places + nplaces; pl++)
		if (strcmp(pl->pl_thread, thread) == 0 &&
		    strcmp(pl->pl_channel, channel) == 0)
			break;
	if (pl == places + PLACES)
		return;
	if (pl == places + nplaces) {
		nplaces++;
		pl->pl_times = 0;
		snprintf(pl->pl_thread, sizeof(pl->pl_thread), "%s", thread);
		snprintf(pl->pl_channel, sizeof(pl->pl_channel), "%s", channel);
	}
	pl->pl_times++;
}

void
watch_sample(pid_t pid)
{
	size_t n;
	struct kinfo_proc *list =
	    watch_processes(KERN_PROC_PID | KERN_PROC_INC_THREAD, pid, &n);

	for (size_t i = 0; i < n; i++)
		watch_note(list[i].ki_tdname,
		    list[i].ki_stat == SSLEEP ? list[i].ki_wmesg : WATCH_RUNS);
	free(list);
}

void
watch_print(void)
{
	for (size_t i = 0; i < nplaces; i++)
		printf("# %u samples: %s in %s\n", places[i].pl_times,
		    places[i].pl_thread, places[i].pl_channel);
}

unsigned
watch_count(const char *thread, const char *channel)
{
	unsigned n = 0;

	for (size_t i = 0; i < nplaces; i++)
		if ((thread == NULL ||
			strcmp(places[i].pl_thread, thread) == 0) &&
		    (channel == NULL ||
			strcmp(places[i].pl_channel, channel) == 0))
			n += places[i].pl_times;
	return n;
}
