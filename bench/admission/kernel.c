/*
 * kernel: the page cache of Linux, with its two lists and refaults (mm/workingset.c, mm/vmscan.c
 * of 6.x without MGLRU), alone and with lib/disk/admission.c, the server's own code, which tells it
 * what to drop.
 *
 * A page is put on the inactive list and becomes active at its second use.  Reclaim takes the
 * tail of the inactive list.  The active list gives its tail to the inactive one when that is small,
 * or when pages come back so soon that they would have stayed in place of an active one; those
 * become active at once.
 */
#include <math.h>
#include <stdlib.h>

#include "bench/admission/cache.h"
#include "bench/admission/policies.h"
#include "lib/disk/admission.h"
#include "lib/disk/file_private.h"

enum { INACTIVE, ACTIVE };

#define REFERENCED 1
#define TELL_EVERY 16 /* requests: the loop's tick */

struct kernel {
	struct cache ke_cache;
	uint64_t ke_age;   /* pages evicted and activated so far */
	double ke_credit;  /* active pages to look at */
	unsigned ke_ratio; /* active pages for an inactive one */
	unsigned ke_uses;  /* that a page's first request counts as */
	bool ke_refaulted; /* since the last reclaim */

	struct admission *ke_admission; /* NULL: keep */
	struct noted ke_noted;
	struct file_private *ke_files;
	enum admission_verdict ke_verdict; /* of this request */
	uint32_t ke_file;
	off_t ke_asked;	      /* bytes of this request */
	uint32_t *ke_brought; /* items of it */
	uint32_t ke_nbrought;
	unsigned ke_told;
};

static void *
kernel_create(const struct setting *se)
{
	struct kernel *ke = sim_alloc(1, sizeof(*ke));
	uint64_t gib = se->se_room * SIM_PAGE / SIM_GIB;

	cache_init(&ke->ke_cache, se);
	ke->ke_ratio = gib > 0 ? (unsigned)sqrt(10.0 * (double)gib) : 1;
	ke->ke_uses = (unsigned)se->se_parameter;
	return ke;
}

static void
kernel_destroy(void *p)
{
	struct kernel *ke = p;

	admission_destroy(&ke->ke_admission);
	cache_free(&ke->ke_cache);
	free(ke->ke_files);
	free(ke->ke_brought);
	free(ke);
}

static void
activate(struct kernel *ke, uint32_t item)
{
	struct cache *ch = &ke->ke_cache;

	ch->ch_nodes[item].nd_flags = 0;
	ke->ke_age += cache_pages(ch, item);
	cache_move(ch, ACTIVE, item);
}

static void
use(struct kernel *ke, uint32_t item)
{
	struct node *nd = &ke->ke_cache.ch_nodes[item];

	if (nd->nd_flags == REFERENCED &&
	    cache_in(&ke->ke_cache, INACTIVE, item))
		activate(ke, item);
	else
		nd->nd_flags = REFERENCED;
}

static void
shrink_active(struct kernel *ke)
{
	struct cache *ch = &ke->ke_cache;
	uint32_t item = ch->ch_lists[ACTIVE].li_tail;

	if (item != CACHE_NONE)
		cache_move(ch, INACTIVE, item);
}

/* Both lists are looked at in proportion. */
static void
reclaim_one(struct kernel *ke)
{
	struct cache *ch = &ke->ke_cache;
	uint64_t active = ch->ch_lists[ACTIVE].li_pages,
		 inactive = ch->ch_lists[INACTIVE].li_pages;
	uint32_t item = ch->ch_lists[INACTIVE].li_tail, pages;

	if (item == CACHE_NONE) {
		shrink_active(ke);
		return;
	}
	pages = cache_pages(ch, item);
	if (ke->ke_refaulted || inactive * ke->ke_ratio < active)
		ke->ke_credit +=
		    (double)pages * (double)active / (double)inactive;
	ch->ch_nodes[item].nd_stamp = ke->ke_age + 1;
	ke->ke_age += pages;
	cache_remove(ch, item);
	for (; ke->ke_credit >= pages; ke->ke_credit -= pages)
		shrink_active(ke);
}

static void
insert(struct kernel *ke, uint32_t item)
{
	struct cache *ch = &ke->ke_cache;
	struct node *nd = &ch->ch_nodes[item];
	uint64_t pages = cache_pages(ch, item);

	while (ch->ch_lists[ACTIVE].li_pages + ch->ch_lists[INACTIVE].li_pages +
		   pages >
	       ch->ch_room)
		reclaim_one(ke);
	ke->ke_refaulted = false;
	nd->nd_flags = 0;
	cache_push(ch, INACTIVE, item);
	if (nd->nd_stamp > 0 &&
	    ke->ke_age - (nd->nd_stamp - 1) <= ch->ch_lists[ACTIVE].li_pages) {
		activate(ke, item);
		ke->ke_refaulted = true;
	}
}

/* Judged when something is missing; what is on trial comes page by page. */
static void
auto_brought(struct kernel *ke, uint32_t item)
{
	if (ke->ke_nbrought == 0)
		ke->ke_verdict = admission_judge(ke->ke_admission,
		    &ke->ke_files[ke->ke_file].fp_file, ke->ke_asked);
	ke->ke_uses = ke->ke_verdict == ADMISSION_TRIAL ? 1 : 2;
	ke->ke_brought[ke->ke_nbrought++] = item;
}

static bool
kernel_request(void *p, uint32_t item)
{
	struct kernel *ke = p;
	unsigned i;

	if (ke->ke_cache.ch_nodes[item].nd_list != 0) {
		use(ke, item);
		return true;
	}
	if (cache_pages(&ke->ke_cache, item) > ke->ke_cache.ch_room)
		return false;
	insert(ke, item);
	if (ke->ke_admission != NULL)
		auto_brought(ke, item);
	for (i = 0; i < ke->ke_uses; i++)
		use(ke, item);
	return false;
}

/* ------------------------------------------------------------------ auto */

/* As lib/disk/pool.c has it: three quarters of memory. */
static void *
auto_create(const struct setting *se)
{
	struct kernel *ke = kernel_create(se);
	const struct catalogue *ca = se->se_catalogue;
	uint32_t i, j;

	ke->ke_admission = admission_create(se->se_room * SIM_PAGE / 4 * 3);
	if (ke->ke_admission == NULL)
		abort();
	ke->ke_files = sim_alloc(ca->ca_files, sizeof(*ke->ke_files));
	ke->ke_brought = sim_alloc(ca->ca_items, sizeof(uint32_t));
	for (i = 0; i < ca->ca_files; i++) {
		ke->ke_files[i].fp_file.fil_ino = i + 1;
		for (j = ca->ca_first[i]; j < ca->ca_first[i + 1]; j++)
			ke->ke_files[i].fp_file.fil_size +=
			    (off_t)ca->ca_pages[j] * SIM_PAGE;
	}
	return ke;
}

static void
auto_begin(void *p, uint32_t file, uint32_t pages)
{
	struct kernel *ke = p;

	ke->ke_nbrought = 0;
	ke->ke_file = file;
	ke->ke_asked = (off_t)pages * SIM_PAGE;
}

/* What the request has brought in goes. */
static void
auto_end(void *p, uint32_t file)
{
	struct kernel *ke = p;
	struct cache *ch = &ke->ke_cache;
	uint32_t i;

	admission_sent(ke->ke_admission, &ke->ke_noted,
	    &ke->ke_files[file].fp_file, ke->ke_asked);
	if (++ke->ke_told % TELL_EVERY == 0)
		admission_tell(ke->ke_admission, &ke->ke_noted);
	if (ke->ke_nbrought == 0 || ke->ke_verdict != ADMISSION_GOES)
		return;
	for (i = 0; i < ke->ke_nbrought; i++)
		if (ch->ch_nodes[ke->ke_brought[i]].nd_list != 0) {
			ch->ch_nodes[ke->ke_brought[i]].nd_stamp = 0;
			cache_remove(ch, ke->ke_brought[i]);
		}
}

const struct policy kernel_policies[] = {
    {"linux-large", "Linux, large folios: the first request is two uses",
	kernel_create, kernel_request, kernel_destroy, NULL, NULL, 2, false,
	false},
    {"linux", "Linux: `keep`, nginx", kernel_create, kernel_request,
	kernel_destroy, NULL, NULL, 1, false, false},
    {"auto", "`auto`: Linux, with lib/disk/admission.c", auto_create,
	kernel_request, kernel_destroy, auto_begin, auto_end, 2, false, true},
    {0},
};
