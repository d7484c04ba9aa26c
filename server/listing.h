/*
 * listing: a directory as an HTML page.
 */
#ifndef SERVER_LISTING_H
#define SERVER_LISTING_H

#include "lib/pagewise.h"

#define LISTING_MAX 100000 /* names shown; the page says if there are more */

struct listing {
	/* set by the caller */
	struct pw_root *li_root;
	uint64_t li_dev; /* the directory's: whose threads read it */
	char *li_path;	 /* below the root; freed by listing_free */
	char *li_title;	 /* the path as the client knows it; freed as well */
	bool li_dotfiles;
	void (*li_done)(struct listing *); /* on the loop */
	void *li_arg;
	/* the result */
	int li_error;  /* 0 or -errno */
	char *li_html; /* malloc'ed; take it and set it to NULL */
	size_t li_len;
	/* private */
	struct pw_task li_task;
};

/* Reads and renders on a pool thread; 0 or -errno, then no li_done comes. */
int listing_start(struct listing *, struct pw_loop *);
void listing_free(struct listing *);

#endif
