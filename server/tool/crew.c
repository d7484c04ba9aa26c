/*
 * crew: see crew.h.
 */
#include "server/tool/crew.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct item {
	STAILQ_ENTRY(item) it_link;
	struct walk_dir *it_dir;
	char it_name[];
};

struct crew {
	void (*cr_work)(void *, const struct walk_file *);
	void *cr_arg;
	/* lock for all fields below; not held while a file is handled */
	pthread_mutex_t cr_lock;
	pthread_cond_t cr_more;	 /* signalled on a new item, and on cr_end */
	pthread_cond_t cr_fewer; /* signalled when an item leaves the queue */
	STAILQ_HEAD(, item) cr_items;
	unsigned cr_waiting; /* items in the queue */
	bool cr_end;	     /* true if no more items follow */
	unsigned cr_threads;
	pthread_t cr_ids[];
};

static struct item *
crew_take(struct crew *cr)
{
	struct item *it;

	pthread_mutex_lock(&cr->cr_lock);
	while (STAILQ_EMPTY(&cr->cr_items) && !cr->cr_end)
		pthread_cond_wait(&cr->cr_more, &cr->cr_lock);
	it = STAILQ_FIRST(&cr->cr_items);
	if (it != NULL) {
		STAILQ_REMOVE_HEAD(&cr->cr_items, it_link);
		cr->cr_waiting--;
		pthread_cond_signal(&cr->cr_fewer);
	}
	pthread_mutex_unlock(&cr->cr_lock);
	return it;
}

static void *
crew_run(void *arg)
{
	struct crew *cr = arg;
	struct item *it;

	while ((it = crew_take(cr)) != NULL) {
		cr->cr_work(
		    cr->cr_arg, &(struct walk_file){it->it_dir, it->it_name});
		walk_unref(&it->it_dir);
		free(it);
	}
	return NULL;
}

struct crew *
crew_create(
    unsigned threads, void (*work)(void *, const struct walk_file *), void *arg)
{
	struct crew *cr = calloc(1, sizeof(*cr) + threads * sizeof(pthread_t));

	if (cr == NULL)
		return NULL;
	cr->cr_work = work;
	cr->cr_arg = arg;
	pthread_mutex_init(&cr->cr_lock, NULL);
	pthread_cond_init(&cr->cr_more, NULL);
	pthread_cond_init(&cr->cr_fewer, NULL);
	STAILQ_INIT(&cr->cr_items);
	for (; cr->cr_threads < threads; cr->cr_threads++)
		if (pthread_create(
			&cr->cr_ids[cr->cr_threads], NULL, crew_run, cr) != 0)
			break;
	if (cr->cr_threads == 0)
		crew_finish(&cr);
	return cr;
}

bool
crew_put(struct crew *cr, const struct walk_file *wf)
{
	size_t len = strlen(wf->wf_name) + 1;
	struct item *it = malloc(sizeof(*it) + len);

	if (it == NULL)
		return false;
	memcpy(it->it_name, wf->wf_name, len);
	it->it_dir = wf->wf_dir;
	walk_ref(it->it_dir);
	pthread_mutex_lock(&cr->cr_lock);
	while (cr->cr_waiting >= 2 * cr->cr_threads)
		pthread_cond_wait(&cr->cr_fewer, &cr->cr_lock);
	STAILQ_INSERT_TAIL(&cr->cr_items, it, it_link);
	cr->cr_waiting++;
	pthread_cond_signal(&cr->cr_more);
	pthread_mutex_unlock(&cr->cr_lock);
	return true;
}

void
crew_finish(struct crew **crp)
{
	struct crew *cr = *crp;

	*crp = NULL;
	pthread_mutex_lock(&cr->cr_lock);
	cr->cr_end = true;
	pthread_cond_broadcast(&cr->cr_more);
	pthread_mutex_unlock(&cr->cr_lock);
	while (cr->cr_threads > 0)
		pthread_join(cr->cr_ids[--cr->cr_threads], NULL);
	pthread_mutex_destroy(&cr->cr_lock);
	pthread_cond_destroy(&cr->cr_more);
	pthread_cond_destroy(&cr->cr_fewer);
	free(cr);
}
