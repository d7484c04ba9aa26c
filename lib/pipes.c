/*
 * pipes: see pipes.h.
 */
#include <stdlib.h>

#include "os.h"
#include "pipes.h"

#define PIPE_SIZE  ((size_t)128 << 10)
#define PIPES_KEPT 64

struct pipes {
	SLIST_HEAD(, pipe) pps_free;
	unsigned pps_count;
};

struct pipes *
pipes_create(void)
{
	return calloc(1, sizeof(struct pipes));
}

static void
pipe_free(struct pipe *pp)
{
	os_pipe_close(pp->pp_fds);
	free(pp);
}

void
pipes_destroy(struct pipes **ppsp)
{
	struct pipes *pps = *ppsp;
	struct pipe *pp, *next;

	if (pps == NULL)
		return;
	*ppsp = NULL;
	for (pp = SLIST_FIRST(&pps->pps_free); pp != NULL; pp = next) {
		next = SLIST_NEXT(pp, pp_link);
		pipe_free(pp);
	}
	free(pps);
}

static struct pipe *
pipe_create(void)
{
	struct pipe *pp = calloc(1, sizeof(*pp));

	if (pp != NULL && os_pipe(pp->pp_fds, PIPE_SIZE) != 0) {
		free(pp);
		pp = NULL;
	}
	return pp;
}

struct pipe *
pipes_get(struct pipes *pps)
{
	struct pipe *pp = SLIST_FIRST(&pps->pps_free);

	if (pp == NULL)
		return pipe_create();
	SLIST_REMOVE_HEAD(&pps->pps_free, pp_link);
	pps->pps_count--;
	return pp;
}

void
pipes_put(struct pipes *pps, struct pipe *pp)
{
	if (pp->pp_held > 0 || pps->pps_count >= PIPES_KEPT) {
		pipe_free(pp);
		return;
	}
	SLIST_INSERT_HEAD(&pps->pps_free, pp, pp_link);
	pps->pps_count++;
}
