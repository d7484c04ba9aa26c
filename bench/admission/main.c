/*
 * admission: the byte miss ratio of cache policies for one trace at several sizes of memory, of a
 * trace drawn with a fixed seed or of one that is given.
 */
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/admission/policies.h"

#define WHOLE (UINT32_C(1) << 20) /* pages: more than any file has */
#define ROOMS 3
static const double rooms[ROOMS] = {0.01, 0.05, 0.2}; /* of all bytes */

struct run {
	struct trace *ru_trace;
	struct catalogue ru_catalogue;
	uint32_t ru_piece;  /* pages */
	uint32_t *ru_next;  /* of each request of an item */
	uint64_t ru_memory; /* pages; 0: shares of all bytes */
};

struct result {
	uint64_t re_asked; /* pages, after the warm-up */
	uint64_t re_missed;
};

static void
usage(void)
{
	fputs(
	    "usage: admission [--seed N] [--scale N] [--whole] [--memory MIB] "
	    "[--only POLICY] TRACE\n"
	    "       admission [--seed N] [--scale N] --requests TRACE\n"
	    "       admission --list\n"
	    "       admission --file FILE --only POLICY --room PAGES "
	    "[--piece PAGES]\n",
	    stderr);
	exit(2);
}

static void
catalogue_make(struct run *ru)
{
	struct catalogue *ca = &ru->ru_catalogue;
	const struct trace *tr = ru->ru_trace;
	uint32_t i, left, n = 0;

	ca->ca_files = tr->tr_files;
	ca->ca_first = sim_alloc(tr->tr_files + 1, sizeof(uint32_t));
	for (i = 0; i < tr->tr_files; i++) {
		ca->ca_first[i] = n;
		n += (tr->tr_sizes[i] + (ru->ru_piece - 1)) / ru->ru_piece;
	}
	ca->ca_first[i] = ca->ca_items = n;
	ca->ca_pages = sim_alloc(n, sizeof(uint32_t));
	for (i = 0, n = 0; i < tr->tr_files; i++)
		for (left = tr->tr_sizes[i]; left > 0;
		     left -= ca->ca_pages[n++])
			ca->ca_pages[n] =
			    left < ru->ru_piece ? left : ru->ru_piece;
}

/* Items of a request: from first, how many.  What it takes of each is the whole. */
static uint32_t
items_of(const struct run *ru, const struct request *rq, uint32_t *first)
{
	uint32_t from = rq->rq_off / ru->ru_piece;
	uint32_t last = (rq->rq_off + rq->rq_len - 1) / ru->ru_piece;

	*first = ru->ru_catalogue.ca_first[rq->rq_file] + from;
	return last - from + 1;
}

static void
next_make(struct run *ru)
{
	const struct trace *tr = ru->ru_trace;
	uint32_t *seen, item, n;
	size_t i, at = 0;

	for (i = 0; i < tr->tr_n; i++)
		at += items_of(ru, &tr->tr_requests[i], &item);
	ru->ru_next = sim_alloc(at, sizeof(uint32_t));
	seen = sim_alloc(ru->ru_catalogue.ca_items, sizeof(uint32_t));
	memset(seen, 0xff, ru->ru_catalogue.ca_items * sizeof(uint32_t));
	for (i = tr->tr_n; i-- > 0;)
		for (n = items_of(ru, &tr->tr_requests[i], &item); n-- > 0;) {
			ru->ru_next[--at] = seen[item + n];
			seen[item + n] = (uint32_t)at;
		}
	free(seen);
}

static void
one_request(const struct run *ru, const struct policy *po, void *p,
    const struct request *rq, struct result *re)
{
	uint32_t item, n = items_of(ru, rq, &item), end = item + n, missed = 0,
		       asked = 0;

	if (po->po_begin != NULL)
		po->po_begin(p, rq->rq_file, rq->rq_len);
	for (; item < end; item++) {
		asked += ru->ru_catalogue.ca_pages[item];
		if (!po->po_request(p, item))
			missed += ru->ru_catalogue.ca_pages[item];
	}
	if (po->po_end != NULL)
		po->po_end(p, rq->rq_file);
	re->re_asked += asked;
	re->re_missed += missed;
}

/* shown: prints the pages that each request missed. */
static struct result
simulate(
    const struct run *ru, const struct policy *po, uint64_t room, bool shown)
{
	const struct setting se = {.se_catalogue = &ru->ru_catalogue,
	    .se_room = room,
	    .se_next = ru->ru_next,
	    .se_parameter = po->po_parameter};
	struct result all = {0}, one;
	void *p = po->po_create(&se);
	size_t i;

	for (i = 0; i < ru->ru_trace->tr_n; i++) {
		one = (struct result){0};
		one_request(ru, po, p, &ru->ru_trace->tr_requests[i], &one);
		if (shown)
			printf("%" PRIu64 "\n", one.re_missed);
		if (i < ru->ru_trace->tr_warm)
			continue;
		all.re_asked += one.re_asked;
		all.re_missed += one.re_missed;
	}
	po->po_destroy(p);
	return all;
}

static const struct policy *const tables[] = {
    simple_policies, frequency_policies, kernel_policies};

static const struct policy *
policy_at(size_t n)
{
	const struct policy *po;
	size_t i;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (po = tables[i]; po->po_name != NULL; po++)
			if (n-- == 0)
				return po;
	return NULL;
}

static void
describe(const struct run *ru, const char *name, uint64_t *bytes)
{
	const struct trace *tr = ru->ru_trace;
	uint8_t *seen = sim_alloc(tr->tr_files, 1);
	uint64_t pages = 0, unique = 0;
	uint32_t files = 0, once = 0, f;
	size_t i;

	for (i = 0; i < tr->tr_n; i++) {
		f = tr->tr_requests[i].rq_file;
		pages += tr->tr_requests[i].rq_len;
		seen[f] = seen[f] < 2 ? seen[f] + 1 : 2;
	}
	for (f = 0; f < tr->tr_files; f++)
		if (seen[f] > 0) {
			files++;
			once += seen[f] == 1;
			unique += tr->tr_sizes[f];
		}
	free(seen);
	*bytes = unique * SIM_PAGE;
	printf("{\"trace\": \"%s\", \"requests\": %zu, \"files\": %u, "
	       "\"once\": %.4f, \"asked_gib\": %.1f, \"unique_gib\": %.2f, "
	       "\"piece_kib\": %u,\n",
	    name, tr->tr_n, files, (double)once / files,
	    (double)pages * SIM_PAGE / (double)SIM_GIB,
	    (double)*bytes / (double)SIM_GIB,
	    ru->ru_piece == WHOLE ? 0 : ru->ru_piece * 4);
}

static size_t
rooms_of(const struct run *ru)
{
	return ru->ru_memory > 0 ? 1 : ROOMS;
}

static uint64_t
room_of(const struct run *ru, size_t i, uint64_t bytes)
{
	return ru->ru_memory > 0
		   ? ru->ru_memory
		   : (uint64_t)(rooms[i] * (double)bytes) / SIM_PAGE;
}

/* For a load generator: a line is "FILE BYTES OFF LEN". */
static void
print_requests(const struct trace *tr)
{
	const struct request *rq;

	for (rq = tr->tr_requests; rq < tr->tr_requests + tr->tr_n; rq++)
		printf("%u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", rq->rq_file,
		    (uint64_t)tr->tr_sizes[rq->rq_file] * SIM_PAGE,
		    (uint64_t)rq->rq_off * SIM_PAGE,
		    (uint64_t)rq->rq_len * SIM_PAGE);
}

static void
compare(struct run *ru, const char *name, const char *only)
{
	const char *comma = "";
	const struct policy *po;
	struct result re;
	uint64_t bytes;
	size_t i, n;

	describe(ru, name, &bytes);
	next_make(ru);
	printf("\"rooms_gib\": [");
	for (i = 0; i < rooms_of(ru); i++)
		printf("%s%.3f", i > 0 ? ", " : "",
		    (double)(room_of(ru, i, bytes) * SIM_PAGE) /
			(double)SIM_GIB);
	printf("],\n\"policies\": [");
	for (n = 0; (po = policy_at(n)) != NULL; n++) {
		if (only != NULL && strcmp(only, po->po_name) != 0)
			continue;
		printf("%s\n{\"name\": \"%s\", \"text\": \"%s\", "
		       "\"offline\": %s, \"ours\": %s, \"missed\": [",
		    comma, po->po_name, po->po_text,
		    po->po_offline ? "true" : "false",
		    po->po_ours ? "true" : "false");
		for (i = 0; i < rooms_of(ru); i++) {
			re = simulate(ru, po, room_of(ru, i, bytes), false);
			printf("%s%.4f", i > 0 ? ", " : "",
			    (double)re.re_missed / (double)re.re_asked);
		}
		printf("]}");
		comma = ",";
	}
	printf("]}\n");
}

static void
run_free(struct run *ru)
{
	trace_free(&ru->ru_trace);
	free(ru->ru_catalogue.ca_first);
	free(ru->ru_catalogue.ca_pages);
	free(ru->ru_next);
}

static void
show(struct run *ru, const char *name, uint64_t room)
{
	const struct policy *po;
	size_t n;

	for (n = 0; (po = policy_at(n)) != NULL; n++)
		if (name != NULL && strcmp(po->po_name, name) == 0)
			break;
	if (name == NULL || po == NULL || room == 0)
		usage();
	next_make(ru);
	simulate(ru, po, room, true);
}

struct asked {
	const char *as_file, *as_policy;
	uint64_t as_seed, as_room;
	unsigned as_scale;
	bool as_requests;
};

static uint64_t
number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (*end != '\0' || n == 0)
		usage();
	return n;
}

static void
parse(int argc, char **argv, struct asked *as, struct run *ru)
{
	static const struct option options[] = {{"scale", 1, NULL, 's'},
	    {"seed", 1, NULL, 'e'}, {"whole", 0, NULL, 'w'},
	    {"memory", 1, NULL, 'm'}, {"requests", 0, NULL, 'q'},
	    {"file", 1, NULL, 'f'}, {"only", 1, NULL, 'p'},
	    {"room", 1, NULL, 'r'}, {"piece", 1, NULL, 'i'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 's')
			as->as_scale = (unsigned)number(optarg);
		else if (c == 'e')
			as->as_seed = number(optarg);
		else if (c == 'w')
			ru->ru_piece = WHOLE;
		else if (c == 'm')
			ru->ru_memory = number(optarg) << 8;
		else if (c == 'q')
			as->as_requests = true;
		else if (c == 'f')
			as->as_file = optarg;
		else if (c == 'p')
			as->as_policy = optarg;
		else if (c == 'r')
			as->as_room = number(optarg);
		else if (c == 'i')
			ru->ru_piece = (uint32_t)number(optarg);
		else
			usage();
	if (optind != argc - (as->as_file == NULL))
		usage();
}

int
main(int argc, char **argv)
{
	struct asked as = {.as_seed = 1, .as_scale = 1};
	struct run ru = {0};
	const char *name;

	parse(argc, argv, &as, &ru);
	name = argv[optind];
	if (ru.ru_piece == 0)
		ru.ru_piece = as.as_file == NULL ? trace_piece(name) : WHOLE;
	ru.ru_trace = as.as_file == NULL
			  ? trace_make(name, as.as_scale, as.as_seed)
			  : trace_read(as.as_file);
	catalogue_make(&ru);
	if (as.as_requests)
		print_requests(ru.ru_trace);
	else if (as.as_file == NULL)
		compare(&ru, name, as.as_policy);
	else
		show(&ru, as.as_policy, as.as_room);
	run_free(&ru);
	return 0;
}
