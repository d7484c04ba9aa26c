/*
 * pipes: see pipes.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/os/os.h"
#include "lib/send/pipes.h"

#define PIPES_KEPT 64  /* maximum number of free pipes */
#define PIPES_MAX  512 /* maximum number of pipes, of two descriptors each */

struct pipes {
	SLIST_HEAD(, pipe) pps_free;
	unsigned pps_nfree;
	size_t pps_size;    /* size of each pipe, bytes */
	unsigned pps_count; /* number of all pipes, free or in use */
	bool pps_taken;	    /* true if a pipe was taken since pipes_rest */
};

struct pipes *
pipes_create(size_t size)
{
	struct pipes *pps = calloc(1, sizeof(*pps));

	if (pps != NULL)
		pps->pps_size = size;
	return pps;
}

static void
pipes_pipe_free(struct pipe *pp)
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
		pipes_pipe_free(pp);
	}
	free(pps);
}

static int
pipes_pipe_create(struct pipes *pps, struct pipe **out)
{
	struct pipe *pp;
	int error;

	if (pps->pps_count >= PIPES_MAX)
		return -EMFILE;
	pp = calloc(1, sizeof(*pp));
	if (pp == NULL)
		return -ENOMEM;
	error = os_pipe(pp->pp_fds, pps->pps_size);
	if (error != 0) {
		free(pp);
		return error;
	}
	pps->pps_count++;
	*out = pp;
	return 0;
}

int
pipes_get(struct pipes *pps, struct pipe **out)
{
	struct pipe *pp = SLIST_FIRST(&pps->pps_free);

	pps->pps_taken = true;
	if (pp == NULL)
		return pipes_pipe_create(pps, out);
	SLIST_REMOVE_HEAD(&pps->pps_free, pp_link);
	pps->pps_nfree--;
	*out = pp;
	return 0;
}

void
pipes_put(struct pipes *pps, struct pipe *pp)
{
	if (pp->pp_held > 0 || pps->pps_nfree >= PIPES_KEPT) {
		pipes_pipe_free(pp);
		pps->pps_count--;
		return;
	}
	SLIST_INSERT_HEAD(&pps->pps_free, pp, pp_link);
	pps->pps_nfree++;
}

void
pipes_rest(struct pipes *pps)
{
	struct pipe *pp;

	while (!pps->pps_taken && (pp = SLIST_FIRST(&pps->pps_free)) != NULL) {
		SLIST_REMOVE_HEAD(&pps->pps_free, pp_link);
		pps->pps_nfree--;
		pps->pps_count--;
		pipes_pipe_free(pp);
	}
	pps->pps_taken = false;
}
