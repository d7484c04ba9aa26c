/*
 * buf: see buf.h.
 */
#include <limits.h>
#include <stdlib.h>

#include "server/util/buf.h"

/* Maximum number of free blocks of each size; further ones are released with free(3). */
#define LIST_MAX 4096

struct block {
	struct block *next;
};

static char *
buf_block_take(struct blocks *bs, size_t size)
{
	struct block *block = bs->bs_free;

	if (block == NULL)
		return malloc(size);
	bs->bs_free = block->next;
	bs->bs_count--;
	return (char *)block;
}

static void
buf_block_give(struct blocks *bs, char *data)
{
	struct block *block = (struct block *)(void *)data;

	if (bs->bs_count == LIST_MAX) {
		free(data);
		return;
	}
	block->next = bs->bs_free;
	bs->bs_free = block;
	bs->bs_count++;
}

static char *
buf_memory_take(struct buf_list *bl, size_t cap)
{
	if (cap == BUF_SIZE)
		return buf_block_take(&bl->bl_large, cap);
	if (cap == BUF_SMALL)
		return buf_block_take(&bl->bl_small, cap);
	return malloc(cap);
}

static void
buf_memory_give(struct buf *b, struct buf_list *bl)
{
	if (b->b_cap == BUF_SIZE)
		buf_block_give(&bl->bl_large, b->b_data);
	else if (b->b_cap == BUF_SMALL)
		buf_block_give(&bl->bl_small, b->b_data);
	else
		free(b->b_data);
}

bool
buf_grow(struct buf *b, struct buf_list *bl, size_t size)
{
	size_t cap = size <= BUF_SMALL ? BUF_SMALL : BUF_SIZE;
	char *data;

	while (cap < size)
		cap *= 2;
	data = buf_memory_take(bl, cap);
	if (data == NULL)
		return false;
	if (b->b_data != NULL) {
		memcpy(data, b->b_data, b->b_len);
		buf_memory_give(b, bl);
	}
	b->b_data = data;
	b->b_cap = cap;
	return true;
}

bool
buf_reserve_exact(struct buf *b, size_t size)
{
	char *data = malloc(size);

	if (data == NULL)
		return false;
	b->b_data = data;
	b->b_cap = size;
	return true;
}

void
buf_fit(struct buf *b, struct buf_list *bl)
{
	struct buf fit = {.b_len = b->b_len, .b_failed = b->b_failed};

	if (b->b_len == 0 || b->b_len > b->b_cap / 2 ||
	    !buf_reserve_exact(&fit, b->b_len))
		return;
	memcpy(fit.b_data, b->b_data, b->b_len);
	explicit_bzero(b->b_data, b->b_len);
	buf_memory_give(b, bl);
	*b = fit;
}

void
buf_shrink(struct buf *b, struct buf_list *bl)
{
	char *data;

	if (b->b_cap != BUF_SIZE || b->b_len > BUF_SMALL)
		return;
	data = buf_memory_take(bl, BUF_SMALL);
	if (data == NULL)
		return;
	memcpy(data, b->b_data, b->b_len);
	explicit_bzero(b->b_data, b->b_len);
	buf_memory_give(b, bl);
	b->b_data = data;
	b->b_cap = BUF_SMALL;
}

void
buf_release(struct buf *b, struct buf_list *bl)
{
	if (b->b_data != NULL)
		buf_memory_give(b, bl);
	*b = (struct buf){0};
}

static void
buf_blocks_free(struct blocks *bs, unsigned most)
{
	struct block *block;

	while ((block = bs->bs_free) != NULL && most-- > 0) {
		bs->bs_free = block->next;
		bs->bs_count--;
		free(block);
	}
}

void
buf_list_free(struct buf_list *bl, unsigned most)
{
	buf_blocks_free(&bl->bl_small, most);
	buf_blocks_free(&bl->bl_large, most);
}

void
buf_list_destroy(struct buf_list *bl)
{
	buf_list_free(bl, UINT_MAX);
}

void
buf_consume(struct buf *b, size_t n)
{
	b->b_len -= n;
	if (b->b_len > 0)
		memmove(b->b_data, b->b_data + n, b->b_len);
}

void
buf_add(struct buf *b, struct buf_list *bl, const char *data, size_t len)
{
	if (len == 0)
		return;
	if (b->b_failed || !buf_reserve(b, bl, b->b_len + len)) {
		b->b_failed = true;
		return;
	}
	memcpy(b->b_data + b->b_len, data, len);
	b->b_len += len;
}

void
buf_str(struct buf *b, struct buf_list *bl, const char *text)
{
	buf_add(b, bl, text, strlen(text));
}

void
buf_uint(struct buf *b, struct buf_list *bl, uint64_t number)
{
	char digits[20];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	buf_add(b, bl, digits + i, sizeof(digits) - i);
}
