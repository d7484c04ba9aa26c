/*
 * drop: gives pages back that a transmission with PW_CACHE_DROP brought in.
 * Pages in a socket's queue cannot be given back, so this happens when they are
 * acknowledged, or, for the end of a transmission, a second later.
 */
#ifndef LIB_DROP_H
#define LIB_DROP_H

#include "pagewise.h"

struct drops;

struct drops *drops_create(void);
void drops_destroy(struct drops **);

/*
 * Drops len bytes at off: now, with due_us 0, or at due_us, which must not be
 * earlier than that of the call before.  Takes a reference to the file.
 */
void drop_add(struct pw_file *, off_t off, off_t len, uint64_t due_us);

void drops_tick(struct pw_loop *, uint64_t now_us);

#endif
