/*
 * verified: see verified.h.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "lib/file/verified.h"
#include "lib/util/offset.h"

#define PIECES 4096

/*
 * End of the part of a file that can be remembered, since a key has 32 bits for the number of a
 * piece.
 */
#define LARGEST ((off_t)VERIFIED_PIECE << 32)

struct piece {
	uint64_t pc_key;  /* file number and piece number; 0 if unused */
	uint64_t pc_at;	  /* time of the last note, or 0 */
	uint64_t pc_used; /* time at which the piece was sent last, or 0 */
	bool pc_again;	  /* true if it was sent within VERIFIED_AGAIN before */
	/* bytes from its start that were sent, and when the first was: a full socket takes a part */
	off_t pc_part;
	uint64_t pc_part_at;
};

struct verified {
	uint32_t vf_number; /* last number that verified_number returned */
	struct piece vf_pieces[PIECES];
};

struct verified *
verified_create(void)
{
	return calloc(1, sizeof(struct verified));
}

void
verified_destroy(struct verified **vfp)
{
	free(*vfp);
	*vfp = NULL;
}

uint32_t
verified_number(struct verified *vf)
{
	if (++vf->vf_number == 0)
		vf->vf_number = 1;
	return vf->vf_number;
}

static uint64_t
verified_key(uint32_t file, off_t off)
{
	return (uint64_t)file << 32 | (uint32_t)(off / VERIFIED_PIECE);
}

/* Returns the slot of a piece.  Pieces of one file are side by side. */
static size_t
verified_slot(uint32_t file, off_t off)
{
	return (size_t)((uint64_t)file * 0x9e3779b1U +
			(uint64_t)(off / VERIFIED_PIECE)) %
	       PIECES;
}

static const struct piece *
verified_find(const struct verified *vf, uint32_t file, off_t off)
{
	const struct piece *pc = &vf->vf_pieces[verified_slot(file, off)];

	return off < LARGEST && pc->pc_key == verified_key(file, off) ? pc
								      : NULL;
}

static bool
verified_piece_is_used(
    const struct verified *vf, uint32_t file, off_t off, uint64_t since)
{
	const struct piece *pc = verified_find(vf, file, off);

	return pc != NULL && pc->pc_again && pc->pc_used > since;
}

static bool
verified_is_known(const struct verified *vf, uint32_t file, off_t off,
    uint64_t since, uint64_t used)
{
	const struct piece *pc = verified_find(vf, file, off);

	return (pc != NULL && pc->pc_at >= since) ||
	       verified_piece_is_used(vf, file, off, used);
}

void
verified_trim(const struct verified *vf, uint32_t file, off_t *off, off_t *end,
    uint64_t since, uint64_t used)
{
	while (*off < *end && verified_is_known(vf, file, *off, since, used))
		*off = offset_next(*off, VERIFIED_PIECE, *end);
	while (
	    *off < *end && verified_is_known(vf, file, *end - 1, since, used))
		*end = (*end - 1) / VERIFIED_PIECE * VERIFIED_PIECE;
	if (*off > *end)
		*off = *end;
}

/* Returns the slot of a piece, which the piece now occupies. */
static struct piece *
verified_piece(struct verified *vf, uint32_t file, off_t off)
{
	struct piece *pc = &vf->vf_pieces[verified_slot(file, off)];

	if (pc->pc_key != verified_key(file, off))
		*pc = (struct piece){.pc_key = verified_key(file, off)};
	return pc;
}

/* Sets *off to the start of the first piece that lies in the range as a whole.  Returns false if none does. */
static bool
verified_next(off_t *off, off_t end, off_t size)
{
	*off = offset_round_up(*off, VERIFIED_PIECE, end);
	return *off < end && end <= LARGEST &&
	       (*off + VERIFIED_PIECE <= end || end >= size);
}

void
verified_note(struct verified *vf, uint32_t file, off_t off, off_t end,
    off_t size, uint64_t now)
{
	for (; verified_next(&off, end, size); off += VERIFIED_PIECE)
		verified_piece(vf, file, off)->pc_at = now;
}

/*
 * Notes a use of [from, to) of a piece, of which it has `len` bytes.  A use in parts counts as one at the time of the
 * first part.
 */
static void
verified_use_piece(
    struct piece *pc, off_t from, off_t to, off_t len, uint64_t now)
{
	bool whole = from == 0 && to >= len;

	if (now - pc->pc_part_at >= VERIFIED_AGAIN)
		pc->pc_part = 0;
	if (from > pc->pc_part)
		return;
	if (pc->pc_part == 0 || whole)
		pc->pc_part_at = now;
	if (to > pc->pc_part)
		pc->pc_part = to;
	if (to < len)
		return;
	pc->pc_part = 0;
	pc->pc_again = now - pc->pc_used < VERIFIED_AGAIN;
	if (pc->pc_part_at > pc->pc_used)
		pc->pc_used = pc->pc_part_at;
}

void
verified_use(struct verified *vf, uint32_t file, off_t off, off_t end,
    off_t size, uint64_t now)
{
	off_t start, len, next;

	for (; off < end && end <= LARGEST; off = next) {
		next = offset_next(off, VERIFIED_PIECE, end);
		start = off - off % VERIFIED_PIECE;
		len = size - start < VERIFIED_PIECE ? size - start
						    : VERIFIED_PIECE;
		verified_use_piece(verified_piece(vf, file, off), off - start,
		    next - start, len, now);
	}
}

void
verified_unuse(struct verified *vf, uint32_t file, off_t off, off_t end)
{
	struct piece *pc;

	for (; off < end; off = offset_next(off, VERIFIED_PIECE, end)) {
		pc = &vf->vf_pieces[verified_slot(file, off)];
		if (pc->pc_key == verified_key(file, off))
			pc->pc_used = pc->pc_part_at = 0;
	}
}

bool
verified_is_used(const struct verified *vf, uint32_t file, off_t off,
    off_t *end, uint64_t since)
{
	bool used = verified_piece_is_used(vf, file, off, since);

	do
		off = offset_next(off, VERIFIED_PIECE, *end);
	while (
	    off < *end && verified_piece_is_used(vf, file, off, since) == used);
	*end = off;
	return used;
}
