/*
 * answer: see answer.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/sim/answer.h"

#define BOUND \
	(60 * \
	    SECOND) /* in which a client that reads gets bytes, if its disk works */
#define STALE (4 * SECOND) /* longest time for which an old version is served */

static char etags[INODES_MAX][ETAG]; /* last ones of the names */

static const struct inode *
answer_file(const struct answer *an)
{
	unsigned i;

	for (i = ninodes; i-- > 0;)
		if (inodes[i].in_name == an->an_name &&
		    inodes[i].in_disk == &disks[an->an_disk])
			return &inodes[i];
	return NULL;
}

void
answer_ask(struct answer *an, unsigned client)
{
	const struct disk *di;
	off_t size;

	*an = (struct answer){.an_client = client,
	    .an_due = true,
	    .an_disk = world_below(plan.pl_disks),
	    .an_length = UINT64_MAX,
	    .an_to = -1,
	    .an_asked = world_now,
	    .an_progress = world_now,
	    .an_no_body = world_once_in(10),
	    .an_listing = world_once_in(12)};
	di = &disks[an->an_disk];
	snprintf(an->an_host, sizeof(an->an_host), "d%u", an->an_disk);
	snprintf(an->an_path, sizeof(an->an_path), "/");
	if (an->an_listing)
		return;
	snprintf(an->an_path, sizeof(an->an_path), "/%s",
	    di->di_names[world_below(world_once_in(2) ? 1 : di->di_nnames)]
		.na_text);
	an->an_name = (unsigned)atoi(an->an_path + 2);
	size = answer_file(an)->in_size;
	if (world_once_in(4)) {
		an->an_from = (off_t)world_below((unsigned)size + 10);
		an->an_to =
		    an->an_from + (off_t)world_below((unsigned)size + 10);
		snprintf(an->an_range, sizeof(an->an_range), "bytes=%lld-%lld",
		    (long long)an->an_from, (long long)an->an_to);
	} else if (world_once_in(4))
		memcpy(an->an_match, etags[an->an_name], ETAG);
}

/* An entity tag names the version: "SECONDS.VERSION-SIZE" in hexadecimal, see representation.c. */
static void
answer_etag(struct answer *an, const char *value)
{
	unsigned long long seconds;
	unsigned version, i;
	unsigned long size;
	const struct inode *in;

	snprintf(an->an_etag, ETAG, "%s", value);
	if (strncmp(value, "W/", 2) == 0)
		value += 2;
	if (an->an_listing ||
	    sscanf(value, "\"%llx.%x-%lx", &seconds, &version, &size) != 3)
		return;
	an->an_version = version;
	an->an_size = (off_t)size;
	for (i = 0; i < ninodes; i++) {
		in = &inodes[i];
		if (in->in_name == an->an_name &&
		    in->in_disk == &disks[an->an_disk] &&
		    version <= in->in_version &&
		    in->in_writes[version].wr_size == (off_t)size)
			an->an_inodes |= UINT64_C(1) << i;
	}
	if (an->an_inodes == 0)
		world_fail("client %u got the entity tag %s, which no version "
			   "of %s ever had",
		    an->an_client, value, an->an_path);
}

void
answer_field(struct answer *an, const char *name, const char *value)
{
	long long from, last, size;

	if (strcasecmp(name, "etag") == 0)
		answer_etag(an, value);
	else if (strcasecmp(name, "content-length") == 0)
		an->an_length = strtoull(value, NULL, 10);
	else if (strcasecmp(name, "content-range") == 0 &&
		 sscanf(value, "bytes %lld-%lld/%lld", &from, &last, &size) ==
		     3)
		an->an_off = from, an->an_last = last, an->an_total = size;
}

/* Fails unless the head names the bytes that the response is to have. */
static void
answer_check_length(const struct answer *an, unsigned status)
{
	off_t len = an->an_size;

	if (status == 206) {
		len = an->an_last + 1 - an->an_from;
		if (an->an_off != an->an_from || an->an_total != an->an_size ||
		    an->an_last !=
			(an->an_to < an->an_size ? an->an_to : an->an_size - 1))
			world_fail("client %u asked for %s of %s and got bytes "
				   "%lld-%lld/%lld",
			    an->an_client, an->an_range, an->an_path,
			    (long long)an->an_off, (long long)an->an_last,
			    (long long)an->an_total);
	}
	if (status != 304 && an->an_length != (uint64_t)len)
		world_fail("client %u: %s has %lld bytes and the response %llu",
		    an->an_client, an->an_path, (long long)len,
		    (unsigned long long)an->an_length);
}

/* Returns true if the server may respond so. */
static bool
answer_may_be(const struct answer *an, unsigned status)
{
	switch (status) {
	case 200:
		return true;
	case 206:
		return an->an_to != -1;
	case 304:
		return an->an_match[0] != '\0' &&
		       strcmp(strchr(an->an_match, '"'),
			   strchr(an->an_etag, '"')) == 0;
	case 416:
		return an->an_to != -1;
	case 500:
		return has_fault(FAULT_ERRORS) || has_fault(FAULT_WRITERS) ||
		       has_fault(FAULT_MEMORY);
	case 503:
		return an->an_shut || plan.pl_queue != 0 ||
		       has_fault(FAULT_HANG) || has_fault(FAULT_SLOW) ||
		       has_fault(FAULT_MEMORY) || has_fault(FAULT_THREADS) ||
		       has_fault(FAULT_ERRORS) || has_fault(FAULT_PREEMPT);
	default:
		return false;
	}
}

/* Fails if the version was replaced long before the request. */
static void
answer_check_age(const struct answer *an)
{
	unsigned i;
	const struct inode *in;

	for (i = 0; i < ninodes; i++) {
		in = &inodes[i];
		if ((an->an_inodes >> i & 1) == 0)
			continue;
		if ((an->an_version == in->in_version ||
			in->in_writes[an->an_version + 1].wr_when + STALE >
			    an->an_asked) &&
		    (in->in_links > 0 || in->in_removed + STALE > an->an_asked))
			return;
	}
	world_fail("client %u got version %u of %s, which is stale",
	    an->an_client, an->an_version, an->an_path);
}

void
answer_head(struct answer *an, unsigned status)
{
	an->an_status = status;
	an->an_progress = world_now;
	covered("status   %u", status);
	story("client %u: %s responds with %u", an->an_client, an->an_path,
	    status);
	if (!answer_may_be(an, status))
		world_fail("client %u got %u for %s %s", an->an_client, status,
		    an->an_path, an->an_range);
	if (an->an_listing || status >= 400)
		return;
	if (an->an_inodes == 0)
		world_fail("client %u got %u without an entity tag",
		    an->an_client, status);
	memcpy(etags[an->an_name], an->an_etag, ETAG);
	if (!has_fault(FAULT_HANG) && !has_fault(FAULT_SLOW))
		answer_check_age(an);
	answer_check_length(an, status);
}

/* Returns how many of the bytes are those of one version of the page, the version that has most of them. */
static size_t
answer_longest(
    const struct inode *in, off_t page, const char *mem, size_t at, size_t len)
{
	size_t n, best = 0;
	const char *bytes;
	unsigned v;

	for (v = 0; v <= in->in_version; v++) {
		bytes = inode_bytes(in, page, v) + at;
		for (n = 0; n < len && mem[n] == bytes[n]; n++)
			continue;
		if (n > best)
			best = n;
	}
	return best;
}

/* Fails unless each part of the bytes was once at its place in one of the files. */
static void
answer_check_parts(const struct answer *an, const char *mem, size_t len)
{
	size_t at = (size_t)(an->an_off % PAGE), n, best;
	unsigned i;

	for (; len > 0; mem += best, at += best, len -= best) {
		for (i = 0, best = 0; i < ninodes; i++) {
			n = (an->an_inodes >> i & 1) == 0
				? 0
				: answer_longest(&inodes[i], an->an_off / PAGE,
				      mem, at, len);
			if (n > best)
				best = n;
		}
		if (best < len && best < 4)
			world_fail("client %u got bytes at %lld that %s never "
				   "had there",
			    an->an_client, (long long)an->an_off, an->an_path);
	}
}

/* Keeps the files whose version has these bytes at this place. */
static void
answer_compare(struct answer *an, const char *mem, size_t len)
{
	off_t page = an->an_off / PAGE;
	const struct inode *in;
	uint64_t fit = 0;
	unsigned i;

	for (i = 0; i < ninodes; i++) {
		in = &inodes[i];
		if ((an->an_inodes >> i & 1) != 0 &&
		    memcmp(mem,
			inode_bytes(in, page,
			    inode_version_at(in, page, an->an_version)) +
			    an->an_off % PAGE,
			len) == 0)
			fit |= UINT64_C(1) << i;
	}
	if (fit != 0) {
		an->an_inodes = fit;
		return;
	}
	an->an_mixed = true;
	answer_check_parts(an, mem, len);
}

void
answer_body(struct answer *an, const char *mem, size_t len)
{
	size_t n;

	an->an_progress = world_now;
	an->an_got += len;
	shared->sh_bytes += len;
	if (an->an_no_body || an->an_status == 304 ||
	    an->an_got > an->an_length)
		world_fail("client %u gets more than the head of %s says",
		    an->an_client, an->an_path);
	if (an->an_listing || an->an_status >= 400)
		return;
	for (; len > 0; mem += n, len -= n, an->an_off += (off_t)n) {
		n = PAGE - (size_t)(an->an_off % PAGE);
		if (n > len)
			n = len;
		answer_compare(an, mem, n);
	}
}

/*
 * Returns true if the file was larger later, and the entity tag was weak, since the file had just changed: most such
 * files only grow (docs/design/transfers-and-budget.md).
 */
static bool
answer_may_have_grown(const struct answer *an)
{
	unsigned i, v;

	for (i = 0; i < ninodes; i++)
		for (v = an->an_version + 1; v <= inodes[i].in_version; v++)
			if ((an->an_inodes >> i & 1) != 0 &&
			    inodes[i].in_writes[v].wr_size > an->an_size)
				return an->an_etag[0] == 'W';
	return false;
}

/* Returns true if the disk was ill, or the file has changed, since the request. */
static bool
answer_is_excused(const struct answer *an)
{
	const struct disk *di = &disks[an->an_disk];
	unsigned i;

	if (has_fault(FAULT_SLOW) || di->di_ill >= an->an_asked ||
	    di->di_hung >= an->an_asked)
		return true;
	for (i = 0; i < ninodes; i++)
		if (inodes[i].in_name == an->an_name &&
		    inodes[i].in_disk == di &&
		    (inodes[i].in_links == 0 ||
			inodes[i].in_version > an->an_version))
			return true;
	return false;
}

void
answer_end(struct answer *an, bool complete, const char *why)
{
	story("client %u: the response to %s ends: %s, %llu bytes",
	    an->an_client, an->an_path, complete ? "complete" : "cut",
	    (unsigned long long)an->an_got);
	covered("response %s", complete		    ? "complete"
			       : an->an_status == 0 ? "never begun"
						    : "cut");
	an->an_due = false;
	if (!complete) {
		if (why != NULL && !answer_is_excused(an))
			world_fail("client %u: the response to %s ends after "
				   "%llu bytes without a cause: %s",
			    an->an_client, an->an_path,
			    (unsigned long long)an->an_got, why);
		return;
	}
	if (an->an_mixed && !answer_may_have_grown(an))
		world_fail("client %u got a complete response to %s with bytes "
			   "of two versions, and the entity tag %s",
		    an->an_client, an->an_path, an->an_etag);
	if (!an->an_no_body && an->an_status != 304 &&
	    an->an_length != UINT64_MAX && an->an_got != an->an_length)
		world_fail("client %u: the response to %s is complete, with "
			   "%llu of %llu bytes",
		    an->an_client, an->an_path, (unsigned long long)an->an_got,
		    (unsigned long long)an->an_length);
}

void
answer_check(const struct answer *an, uint64_t since, const char *how)
{
	const struct disk *di = &disks[an->an_disk];

	if (an->an_progress > since)
		since = an->an_progress;
	if (di->di_hung > since)
		since = di->di_hung;
	if (di->di_ill > since)
		since = di->di_ill;
	if (world_now >
	    since + BOUND +
		(512 + 48 * (uint64_t)plan.pl_clients) * di->di_latency)
		world_fail("client %u reads by %s, its disk works, and it got "
			   "nothing of %s for %llu s (after %llu bytes)",
		    an->an_client, how, an->an_path,
		    (unsigned long long)(BOUND / SECOND),
		    (unsigned long long)an->an_got);
}
