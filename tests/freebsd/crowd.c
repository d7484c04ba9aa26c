/*
 * crowd: see crowd.h.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/freebsd/crowd.h"
#include "tests/freebsd/evict.h"
#include "tests/freebsd/watch.h"

#define PING_EVERY   0.05 /* seconds */
#define SAMPLE_EVERY 0.1
#define WARM_SECONDS 10

const char *crowd_cached = "/hot.txt";

/* Has the worker learn that the file is in memory: it looks at a call's bytes at its next tick. */
static bool
crowd_warm(struct http *ht)
{
	for (int i = 0; i < 2; i++) {
		http_ask(ht, crowd_cached, NULL);
		if (!http_await(ht, WARM_SECONDS))
			return false;
		usleep(500000);
	}
	return true;
}

bool
crowd_begin(struct crowd *cr, pid_t server, const char *dir, unsigned n)
{
	char path[64];

	memset(cr, 0, sizeof(*cr));
	cr->cr_n = cr->cr_left = n;
	cr->cr_server = server;
	watch_forget();
	if (!http_open(&cr->cr_ping, 5) || !crowd_warm(&cr->cr_ping))
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (!http_open(&cr->cr_clients[i], 5))
			return false;
		snprintf(path, sizeof(path), "/%s/%u", dir, i);
		http_ask(&cr->cr_clients[i], path, NULL);
	}
	return true;
}

/* Sends a ping when one is due. */
static void
crowd_ping(struct crowd *cr)
{
	struct http *ht = &cr->cr_ping;
	double now = http_now();

	if (!ht->ht_done && now - ht->ht_begun > cr->cr_worst)
		cr->cr_worst = now - ht->ht_begun;
	if (!ht->ht_done || now < cr->cr_next_ping)
		return;
	if (ht->ht_failed) {
		http_close(ht);
		if (!http_open(ht, 5))
			return;
	}
	cr->cr_pings++;
	cr->cr_next_ping = now + PING_EVERY;
	http_ask(ht, crowd_cached, NULL);
}

static void
crowd_pull(struct crowd *cr, const struct pollfd *pfds)
{
	for (unsigned i = 0; i < cr->cr_n; i++) {
		if (pfds[i].revents == 0)
			continue;
		http_pull(&cr->cr_clients[i]);
		cr->cr_left -= cr->cr_clients[i].ht_done;
	}
	if (pfds[cr->cr_n].revents == 0 || cr->cr_ping.ht_done)
		return;
	http_pull(&cr->cr_ping);
	if (http_now() - cr->cr_ping.ht_begun > cr->cr_worst)
		cr->cr_worst = http_now() - cr->cr_ping.ht_begun;
}

static void
crowd_watch(const struct crowd *cr, struct pollfd *pfds)
{
	const struct http *ht;

	for (unsigned i = 0; i <= cr->cr_n; i++) {
		ht = i < cr->cr_n ? &cr->cr_clients[i] : &cr->cr_ping;
		pfds[i] = (struct pollfd){
		    .fd = ht->ht_done ? -1 : ht->ht_sock, .events = POLLIN};
	}
}

void
crowd_run(struct crowd *cr, double seconds, off_t enough)
{
	struct pollfd pfds[CROWD_MOST + 1];
	double end = http_now() + seconds;
	off_t got = 0;
	unsigned i;

	while (cr->cr_left > 0 && got < enough && http_now() < end) {
		crowd_ping(cr);
		if (http_now() >= cr->cr_next_sample) {
			watch_sample(cr->cr_server);
			cr->cr_next_sample = http_now() + SAMPLE_EVERY;
		}
		crowd_watch(cr, pfds);
		if (poll(pfds, cr->cr_n + 1, 20) > 0)
			crowd_pull(cr, pfds);
		for (got = 0, i = 0; i < cr->cr_n; i++)
			got += cr->cr_clients[i].ht_got;
	}
}

long
crowd_resident(const struct crowd *cr, const char *dir)
{
	long pages = 0;
	char file[64];

	for (unsigned i = 0; i < cr->cr_n; i++) {
		snprintf(file, sizeof(file), "data/%s/%u", dir, i);
		pages += evict_resident(file);
	}
	return pages;
}

unsigned
crowd_end(struct crowd *cr, const char *dir)
{
	unsigned wrong = 0;
	struct stat st;
	char file[64];

	for (unsigned i = 0; i < cr->cr_n; i++) {
		snprintf(file, sizeof(file), "data/%s/%u", dir, i);
		wrong +=
		    stat(file, &st) == -1 ||
		    !http_is_file(&cr->cr_clients[i], 200, file, 0, st.st_size);
		http_close(&cr->cr_clients[i]);
	}
	http_close(&cr->cr_ping);
	return wrong;
}
