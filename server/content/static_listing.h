/*
 * static_listing: sends the listing of a directory that a lookup found.
 */
#ifndef SERVER_CONTENT_STATIC_LISTING_H
#define SERVER_CONTENT_STATIC_LISTING_H

#include <stdbool.h>

struct exchange;
struct place;

/*
 * Lists the directory lk_path, which `place` identifies by device, inode and times.  Returns as
 * exchange_respond does.
 */
bool static_listing_begin(struct exchange *, struct place);

#endif
