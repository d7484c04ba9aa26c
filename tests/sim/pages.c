/*
 * pages: files, and their pages in the page cache.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/disk/reclaim.h"
#include "tests/sim/kernel.h"

#define NOISE	((size_t)1 << 18)
#define SPLICE	65536 /* bytes that a call reads at once */
#define LOOKS	256   /* pages at which one reclaim looks */
#define MOMENTS 64
/* How long a loop may trust a check: a millisecond for a known piece, and one for the chunk that has it. */
#define HOLDS	(2 * MS)
#define HOLDS_LONG \
	(101 * MS) /* while nothing is reclaimed: RESIDENCY_HOLDS_QUIET */
#define QUIET  SECOND
#define ACTIVE (2 * RECLAIM_USED * US) /* a piece is sent in parts */

struct inode inodes[INODES_MAX];
unsigned ninodes;

static char noise[NOISE + PAGE];
static const char zeros[PAGE];
static uint64_t resident, reclaimed;
static uint64_t
    moments[MOMENTS]; /* times of the last reclaims, 20 ms apart at least */
static unsigned nmoments;
static uint32_t request_number;

/* Where loops are: their last two calls about pages. */
static struct {
	const char *at_call;
	struct inode *at_inode;
	off_t at_off;
	bool at_reclaimed;
} at[8];

const char *
inode_bytes(const struct inode *in, off_t page, uint32_t version)
{
	uint64_t h;
	size_t i;

	if (noise[0] == 0) {
		h = 88172645463325252U;
		for (i = 0; i < sizeof(noise); i++) {
			h ^= h << 13, h ^= h >> 7, h ^= h << 17;
			noise[i] = (char)(h | 1);
		}
	}
	if (version == 0)
		return zeros;
	h = (in->in_number * 1000003 + (uint64_t)page) * 1000003 + version;
	h *= UINT64_C(0x9e3779b97f4a7c15);
	return noise + (h >> 32) % NOISE;
}

uint32_t
inode_version_at(const struct inode *in, off_t page, unsigned version)
{
	off_t off = page * PAGE;
	unsigned v = version;

	for (; v > 0; v--)
		if (in->in_writes[v].wr_from <= off &&
		    off < in->in_writes[v].wr_end)
			return v;
	return 0;
}

struct page *
page_at(struct inode *in, off_t off)
{
	return &in->in_pages[off / PAGE];
}

static void
inode_grow_pages(struct inode *in)
{
	unsigned n = (unsigned)((in->in_size + PAGE - 1) / PAGE) + 1;

	if (n <= in->in_npages)
		return;
	in->in_pages = realloc(in->in_pages, n * sizeof(in->in_pages[0]));
	memset(in->in_pages + in->in_npages, 0,
	    (n - in->in_npages) * sizeof(in->in_pages[0]));
	in->in_npages = n;
}

/* Notes a version that writes [from, end).  Its pages are in the cache, since they were written. */
static void
inode_new_version(struct inode *in, off_t from, off_t end, bool cached)
{
	off_t off;

	in->in_version++;
	in->in_time = (time_t)(world_now / SECOND);
	in->in_writes[in->in_version].wr_from = from;
	in->in_writes[in->in_version].wr_end = end;
	in->in_writes[in->in_version].wr_size = in->in_size;
	in->in_writes[in->in_version].wr_when = world_now;
	for (off = from; off < end; off += PAGE) {
		page_at(in, off)->pg_version = in->in_version;
		if (cached && page_at(in, off)->pg_state == ABSENT) {
			page_at(in, off)->pg_state = RESIDENT;
			resident++;
		}
	}
}

unsigned
inode_create(struct disk *di, off_t size)
{
	struct inode *in = &inodes[ninodes];
	off_t hole;

	if (ninodes == INODES_MAX)
		world_fail("the simulator has too many files");
	in->in_number = 1000 + ninodes;
	in->in_disk = di;
	in->in_size = size;
	in->in_owned =
	    plan.pl_flavour == POPULAR ? world_once_in(4) : !world_once_in(3);
	in->in_links = 1;
	in->in_bad = has_fault(FAULT_ERRORS) && world_once_in(12);
	inode_grow_pages(in);
	hole = world_once_in(6)
		   ? (off_t)world_below((unsigned)(size / PAGE + 1)) * PAGE
		   : 0;
	inode_new_version(in, hole, size, false);
	in->in_time -= world_once_in(4) ? 0 : 1000;
	return ninodes++;
}

void
inode_write(struct inode *in)
{
	off_t from, end, was = in->in_size;

	if (in->in_version + 1 >= WRITES_MAX)
		return;
	switch (world_below(4)) {
	case 0: /* grows */
		in->in_size += (off_t)world_between(1, 300000);
		inode_grow_pages(in);
		from = was / PAGE * PAGE, end = in->in_size;
		break;
	case 1: /* is truncated */
		in->in_size = (off_t)world_below((unsigned)was) + 1;
		for (from = (in->in_size + PAGE - 1) / PAGE * PAGE; from < was;
		     from += PAGE)
			page_cut(in, page_at(in, from));
		from = in->in_size / PAGE * PAGE, end = in->in_size;
		break;
	default:
		from = (off_t)world_below((unsigned)(was / PAGE + 1)) * PAGE;
		end = from + (off_t)world_between(1, 40) * PAGE;
		if (end > was)
			end = was;
	}
	if (from >= end)
		from = 0, end = in->in_size < PAGE ? in->in_size : PAGE;
	story("a writer writes file %llu at [%lld, %lld), size %lld",
	    (unsigned long long)in->in_number, (long long)from, (long long)end,
	    (long long)in->in_size);
	covered("writer   a file was written");
	inode_new_version(in, from, end, true);
}

/* ------------------------------------------------------------------- leaving */

/* Removes a page from the cache, and from all mappings. */
static void
page_leave(struct page *pg, enum gone why)
{
	if (pg->pg_state == RESIDENT)
		resident--;
	pg->pg_state = ABSENT;
	pg->pg_gone = (uint8_t)why;
	pg->pg_when = world_now;
	pg->pg_epoch++;
	pg->pg_maps = 0;
	pg->pg_uses = 0;
	pg->pg_folio = false;
}

void
page_cut(struct inode *in, struct page *pg)
{
	(void)in;
	page_leave(pg, GONE_CUT);
	pg->pg_version = 0;
	pg->pg_kept = 0;
	pg->pg_request = 0;
}

uint32_t
page_keep(struct page *pg)
{
	pg->pg_kept++;
	return pg->pg_epoch;
}

void
page_let_go(struct page *pg, uint32_t epoch)
{
	if (pg->pg_epoch == epoch && pg->pg_kept > 0)
		pg->pg_kept--;
}

/* The pages that leave the cache together with this one: [*first, *end). */
static void
page_unit(struct inode *in, off_t page, off_t *first, off_t *end)
{
	off_t last = (in->in_size + PAGE - 1) / PAGE;

	*first = page, *end = page + 1;
	if (!in->in_pages[page].pg_folio)
		return;
	*first = page / FOLIO_PAGES * FOLIO_PAGES;
	*end = *first + FOLIO_PAGES < last ? *first + FOLIO_PAGES : last;
}

/* Removes a page or folio, unless something keeps it.  A drop takes no mapped pages.  Returns how many left. */
static unsigned
page_remove(struct inode *in, off_t first, off_t end, enum gone why)
{
	unsigned n = 0;
	off_t i;

	for (i = first; i < end; i++)
		if (in->in_pages[i].pg_kept > 0 ||
		    in->in_pages[i].pg_state == FLIGHT ||
		    (why == GONE_DROPPED && in->in_pages[i].pg_maps > 0))
			return 0;
	for (i = first; i < end; i++)
		if (in->in_pages[i].pg_state == RESIDENT) {
			page_leave(&in->in_pages[i], why);
			n++;
		}
	return n;
}

void
page_drop(struct inode *in, off_t from, off_t end)
{
	off_t first = (from + PAGE - 1) / PAGE, last = end / PAGE, a, b;
	unsigned n = 0;

	if (end >= in->in_size)
		last = (in->in_size + PAGE - 1) / PAGE;
	for (; first < last && first < (off_t)in->in_npages; first = b) {
		page_unit(in, first, &a, &b);
		if (a >= from / PAGE && b <= last)
			n += page_remove(in, a, b, GONE_DROPPED);
		if (b <= first)
			b = first + 1;
	}
	if (n > 0)
		covered("drop     pages were dropped");
	story("drops %u pages of file %llu at [%lld, %lld)", n,
	    (unsigned long long)in->in_number, (long long)from, (long long)end);
}

uint64_t
kernel_reclaimed(void)
{
	return reclaimed;
}

static void
kernel_note_reclaim(unsigned n)
{
	if (n == 0)
		return;
	reclaimed += n;
	if (nmoments == 0 ||
	    world_now > moments[(nmoments - 1) % MOMENTS] + 20 * MS)
		moments[nmoments++ % MOMENTS] = world_now;
}

static void
page_use(struct page *pg)
{
	if (pg->pg_uses < 2 && (pg->pg_uses == 0 || pg->pg_used != world_now))
		pg->pg_uses++;
	pg->pg_used = world_now;
	pg->pg_mark = reclaimed;
}

/*
 * Returns true if the kernel reclaims others first: pages that were used twice, until an eighth of memory was
 * reclaimed (reclaim.h has the measurement).
 */
static bool
page_is_active(const struct page *pg)
{
	return pg->pg_uses == 2 && world_now - pg->pg_used <= ACTIVE &&
	       reclaimed - pg->pg_mark <
		   machine.ma_memory / PAGE / RECLAIM_SHARE;
}

/* Reclaims pages from this one on that were not used after the time. */
static void
kernel_reclaim(struct inode *in, off_t page, unsigned most, uint64_t used)
{
	unsigned n = 0, got;
	off_t a, b, last = (in->in_size + PAGE - 1) / PAGE;

	if (last > page + LOOKS)
		last = page + LOOKS;
	while (page < last && n < most && in->in_pages[page].pg_used <= used) {
		if (in->in_pages[page].pg_state == ABSENT ||
		    page_is_active(&in->in_pages[page])) {
			page++;
			continue;
		}
		page_unit(in, page, &a, &b);
		got = page_remove(in, a, b, GONE_RECLAIMED);
		if (got == 0 && in->in_pages[page].pg_state == RESIDENT)
			break;
		n += got;
		page = b > page ? b : page + 1;
	}
	if (n == 0)
		return;
	kernel_note_reclaim(n);
	covered("reclaim  pages");
	story("the kernel reclaims %u pages of file %llu before page %lld", n,
	    (unsigned long long)in->in_number, (long long)page);
}

static void
kernel_reclaim_any(void)
{
	struct inode *in, *best = NULL;
	off_t page, best_page = 0;
	unsigned i;

	for (i = 0; i < 8 && ninodes > 0; i++) {
		in = &inodes[world_below(ninodes)];
		page = (off_t)world_below(
		    (unsigned)((in->in_size + PAGE - 1) / PAGE));
		if (in->in_pages[page].pg_state != RESIDENT)
			continue;
		if (best == NULL || in->in_pages[page].pg_used <
					best->in_pages[best_page].pg_used)
			best = in, best_page = page;
	}
	if (best != NULL)
		kernel_reclaim(best, best_page, 1 + world_below(128),
		    best->in_pages[best_page].pg_used + 100 * MS);
}

/* Reclaims what a loop is about to send. */
static void
kernel_reclaim_worst(int loop)
{
	struct inode *in = at[loop].at_inode;

	if (in == NULL || at[loop].at_off >= in->in_size)
		return;
	at[loop].at_reclaimed = true;
	kernel_reclaim(in, at[loop].at_off / PAGE, 1 + world_below(64), NEVER);
}

void
kernel_pressure(void)
{
	unsigned tries;

	for (tries = 0;
	     resident * PAGE > machine.ma_memory / 8 * 7 && tries < 8; tries++)
		kernel_reclaim_any();
	if (!has_fault(FAULT_RECLAIM))
		return;
	if (task_is_loop() && world_once_in(plan.pl_reclaims))
		kernel_reclaim_worst(task_loop(world_me));
	else if (world_once_in(plan.pl_reclaims))
		kernel_reclaim_any();
}

void
kernel_call(const char *call, struct inode *in, off_t off)
{
	int loop = task_loop(world_me);

	if (loop < 0)
		return;
	if (at[loop].at_reclaimed && at[loop].at_call != NULL)
		covered_calls(at[loop].at_call, call);
	at[loop].at_reclaimed = false;
	at[loop].at_call = call;
	at[loop].at_inode = in;
	at[loop].at_off = off;
}

/* ------------------------------------------------------------------- reading */

struct request {
	struct inode *re_inode;
	off_t re_first, re_end; /* pages */
	uint32_t re_number;
	bool re_fails;
};

static void
request_end(void *arg)
{
	struct request *re = arg;
	struct disk *di = re->re_inode->in_disk;
	struct page *pg;
	off_t i;

	if (di->di_hung > world_now) {
		world_at(di->di_hung + world_between(0, MS), request_end, re);
		return;
	}
	for (i = re->re_first; i < re->re_end; i++) {
		pg = &re->re_inode->in_pages[i];
		if (pg->pg_state != FLIGHT || pg->pg_request != re->re_number)
			continue;
		pg->pg_state = re->re_fails ? ABSENT : RESIDENT;
		if (re->re_fails)
			pg->pg_gone = GONE_FAILED, pg->pg_when = world_now;
		resident += !re->re_fails;
		pg->pg_used = world_now;
	}
	world_wake(re->re_inode, TASKS_MAX);
	free(re);
}

static void
request_begin(struct inode *in, off_t first, off_t end, bool by_library)
{
	struct request *re = malloc(sizeof(*re));
	uint64_t when;
	bool bad = in->in_bad && first <= 700 && end > 650;
	off_t i;

	*re = (struct request){in, first, end, ++request_number,
	    bad || (has_fault(FAULT_ERRORS) && world_once_in(400))};
	for (i = first; i < end; i++) {
		in->in_pages[i].pg_state = FLIGHT;
		in->in_pages[i].pg_request = re->re_number;
		in->in_pages[i].pg_by_library = by_library;
	}
	story("reads file %llu [%lld, %lld)%s",
	    (unsigned long long)in->in_number, (long long)first * PAGE,
	    (long long)end * PAGE, re->re_fails ? ", which will fail" : "");
	if (re->re_fails) {
		in->in_disk->di_ill = world_now;
		covered("fault    a read fails");
	}
	when = disk_end(in->in_disk, (unsigned)(end - first));
	if (plan.pl_pieces)
		when += world_below(4) * in->in_disk->di_latency;
	world_at(when, request_end, re);
}

void
pages_read(struct inode *in, off_t from, off_t end, bool by_library)
{
	off_t i = from / PAGE, last = (end + PAGE - 1) / PAGE, first;
	off_t most = (in->in_size + PAGE - 1) / PAGE, most_at_once = 256;

	if (last > most)
		last = most;
	while (i < last) {
		if (plan.pl_pieces)
			most_at_once = 1 + world_below(64);
		for (; i < last && in->in_pages[i].pg_state != ABSENT; i++)
			continue;
		for (first = i; i < last && i < first + most_at_once &&
				in->in_pages[i].pg_state == ABSENT;
		     i++)
			continue;
		if (i > first)
			request_begin(in, first, i, by_library);
	}
}

/* Returns how long the loops may trust a check now: see docs/design/residency.md. */
static uint64_t
page_holds(uint64_t step)
{
	unsigned i, n = nmoments < MOMENTS ? nmoments : MOMENTS;

	for (i = 0; i < n; i++)
		if (moments[i] + QUIET > step && moments[i] + HOLDS_LONG < step)
			return HOLDS;
	return HOLDS_LONG;
}

/* Says why the loop's wait for this page is no fault of the library, or NULL. */
static const char *
page_excuse_of(const struct page *pg)
{
	uint64_t step = *task_step();

	if (step == NEVER)
		return "this send path waits";
	/* drop_lock.h: a step takes less than DROP_GRACE. */
	if (pg->pg_gone == GONE_DROPPED)
		return world_now - step > HOLDS_LONG ? "dropped in a long step"
						     : NULL;
	if (pg->pg_gone == GONE_RECLAIMED)
		return step <= pg->pg_when + page_holds(step)
			   ? "reclaimed after the check"
			   : NULL;
	if (pg->pg_gone == GONE_CUT)
		return "written again";
	/* cachestat(2) counts a page in flight whose read then fails. */
	if (pg->pg_gone == GONE_FAILED && pg->pg_when + HOLDS_LONG > step)
		return "its read failed after the check";
	/* Linux reads ahead for other readers, whose pages a loop may meet: limits.md. */
	return pg->pg_state == FLIGHT && !pg->pg_by_library
		   ? "in flight for another reader"
		   : NULL;
}

void
page_excuse(struct inode *in, struct page *pg, const char *call)
{
	static const char *const gone[] = {"was never read", "was reclaimed",
	    "was dropped by the library", "was truncated", "could not be read"};
	const char *why = page_excuse_of(pg);

	if (why == NULL)
		world_fail("%s would wait for the disk in %s: page %lld of "
			   "file %llu %s%s, %.3f ms before the step",
		    task_name(world_me), call, (long long)(pg - in->in_pages),
		    (unsigned long long)in->in_number, gone[pg->pg_gone],
		    pg->pg_state == FLIGHT ? " and is in flight" : "",
		    ((double)*task_step() - (double)pg->pg_when) / 1e6);
	covered("excused  %s: %s", call, why);
	story("%s would wait for page %lld of file %llu: excused, %s", call,
	    (long long)(pg - in->in_pages), (unsigned long long)in->in_number,
	    why);
}

/* A loop that is excused has the page at once, and the sleep is counted. */
static int
page_need_on_loop(struct inode *in, struct page *pg, const char *call)
{
	page_excuse(in, pg, call);
	++*task_switches();
	world_now += MS;
	resident += pg->pg_state != RESIDENT;
	pg->pg_state = RESIDENT;
	return 0;
}

int
page_need(struct inode *in, off_t off, size_t len, const char *call)
{
	struct page *pg = page_at(in, off);
	off_t ahead = (off_t)machine.ma_readahead << 10;
	bool begun = false;

	if (len > 0)
		ahead = len < SPLICE ? (off_t)len : SPLICE;
	page_use(pg);
	if (pg->pg_state == RESIDENT)
		return 0;
	if (in->in_disk->di_kind == TMPFS) {
		pg->pg_state = RESIDENT;
		resident++;
		return 0;
	}
	if (task_is_loop() && *task_step() != NEVER)
		return page_need_on_loop(in, pg, call);
	for (;;) {
		pg = page_at(in, off);
		if (pg->pg_state == RESIDENT)
			return 0;
		if (pg->pg_state == ABSENT && begun &&
		    pg->pg_gone == GONE_FAILED)
			return -EIO;
		if (off >= in->in_size)
			return -ENODATA;
		if (pg->pg_state == ABSENT)
			pages_read(in, off, off + ahead, false);
		begun = true;
		locks_check_io();
		world_wait(in, NEVER);
	}
}

bool
pages_are_resident(struct inode *in, off_t from, off_t end)
{
	for (; from < end; from = (from / PAGE + 1) * PAGE)
		if (from >= in->in_size ||
		    page_at(in, from)->pg_state != RESIDENT)
			return false;
	return true;
}
