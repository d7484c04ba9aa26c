/*
 * churn: see churn.h.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/freebsd/churn.h"

#define LARGE	       2  /* clients of the larger file */
#define CHURN_PATIENCE 60 /* seconds */

static const char *
churn_path(unsigned i)
{
	return i < LARGE ? "/sized/131072" : "/hot.txt";
}

void
churn_begin(struct churn *ch)
{
	memset(ch, 0, sizeof(*ch));
	for (unsigned i = 0; i < CHURN_CLIENTS; i++)
		ch->ch_clients[i].ht_sock = -1;
}

static void
churn_open(struct churn *ch, unsigned i)
{
	struct http *ht = &ch->ch_clients[i];

	ch->ch_since[i] = http_now();
	if (http_open(ht, 0)) {
		http_ask(ht, churn_path(i), NULL);
		return;
	}
	printf("# connect: %s\n", strerror(errno));
	ch->ch_refused++;
}

static void
churn_judge(struct churn *ch, unsigned i)
{
	struct http *ht = &ch->ch_clients[i];
	double seconds = http_now() - ch->ch_since[i];
	struct stat st;
	char file[64];

	snprintf(file, sizeof(file), "data%s", churn_path(i));
	if (stat(file, &st) == 0 &&
	    http_is_file(ht, 200, file, 0, st.st_size)) {
		ch->ch_exact++;
	} else {
		printf("# %s: status %d, %lld bytes, %s after %.1f s\n", file,
		    ht->ht_status, (long long)ht->ht_got,
		    ht->ht_done ? "closed" : "pending", seconds);
		ch->ch_wrong++;
	}
	if (seconds > ch->ch_worst)
		ch->ch_worst = seconds;
	http_close(ht);
}

/* Reads what has arrived; judges the responses that have ended, or that took too long. */
static void
churn_pull(struct churn *ch)
{
	struct pollfd pfds[CHURN_CLIENTS];
	double now;

	for (unsigned i = 0; i < CHURN_CLIENTS; i++)
		pfds[i] = (struct pollfd){
		    .fd = ch->ch_clients[i].ht_sock, .events = POLLIN};
	poll(pfds, CHURN_CLIENTS, 20);
	now = http_now();
	for (unsigned i = 0; i < CHURN_CLIENTS; i++) {
		if (pfds[i].fd == -1)
			continue;
		if (pfds[i].revents != 0)
			http_pull(&ch->ch_clients[i]);
		if (ch->ch_clients[i].ht_done ||
		    now > ch->ch_since[i] + CHURN_PATIENCE)
			churn_judge(ch, i);
	}
}

void
churn_run(struct churn *ch)
{
	for (unsigned i = 0; i < CHURN_CLIENTS; i++)
		if (ch->ch_clients[i].ht_sock == -1)
			churn_open(ch, i);
	churn_pull(ch);
}

bool
churn_end(struct churn *ch)
{
	bool open = true;

	while (open) {
		churn_pull(ch);
		open = false;
		for (unsigned i = 0; i < CHURN_CLIENTS; i++)
			open = open || ch->ch_clients[i].ht_sock != -1;
	}
	printf("# %u connections; %u were refused, %u responses are wrong; the "
	       "longest took %.0f ms\n",
	    ch->ch_exact + ch->ch_wrong + ch->ch_refused, ch->ch_refused,
	    ch->ch_wrong, ch->ch_worst * 1000);
	return ch->ch_exact > 0 && ch->ch_refused + ch->ch_wrong == 0;
}
