/*
 * Who is closed of those that have sent no complete request (server/worker/hoard.c); each test has
 * the name of the rule that it pins.
 */
#include "test.h"

#include "server/worker/hoard.h"

static const struct seed seed = {1, 2};

/*
 * A connection is a letter, its address: a small one has sent nothing, a capital something;
 * '+' behind it: its handshake has begun; '*': it has sent part of a request after that; '!': it is spared; '|': those behind it are too young.
 */
static size_t
parse(const char *text, struct hoarded list[HOARD_MAX], size_t *ripe)
{
	size_t n = 0;

	*ripe = SIZE_MAX;
	for (; *text != '\0'; text++)
		if (*text == '|')
			*ripe = n;
		else if (*text == '!')
			list[n - 1].ho_spared = true;
		else if (*text == '+')
			list[n - 1].ho_progress = HOARD_HANDSHAKE;
		else if (*text == '*')
			list[n - 1].ho_progress = HOARD_SECURE_PART;
		else
			list[n++] = (struct hoarded){
			    .ho_key = ((uint64_t)*text | 0x20) << 16,
			    .ho_progress = (*text & 0x20) == 0 ? HOARD_PART
							       : HOARD_SILENT};
	if (*ripe == SIZE_MAX)
		*ripe = n;
	return n;
}

enum { NONE = -1 };

TEST(order_of_eviction)
{
	static const struct {
		const char *list;
		int pick;
		unsigned most;
	} table[] = {
	    {"", NONE, 0},
	    {"a", 0, 1},
	    {"A", 0, 1},
	    /* of the address that has most */
	    {"abb", 1, 2},
	    {"aBB", 1, 2},
	    {"bab", 0, 2},
	    {"abbccc", 3, 3},
	    /* of several such addresses, of any */
	    {"aabb", 0, 2},
	    {"AABb", 3, 2},
	    {"abc", 0, 1},
	    /* first what has sent nothing, then the oldest */
	    {"AAaa", 2, 4},
	    {"ABc", 2, 1},
	    {"AAA", 0, 3},
	    {"A+B", 1, 1},
	    {"A+Bc", 2, 1},
	    {"A+A+B", 0, 2},
	    {"A+AA", 1, 3},
	    /* a handshake stays while another is young, if it is one in four */
	    {"A+|bcd", NONE, 1},
	    {"A+|bc", 0, 1},
	    {"A+|B+cdefgh", NONE, 1},
	    {"A+|B+cdefg", 0, 1},
	    {"A+|B+C+D+", 0, 1},
	    {"A+C|bd", 1, 1},
	    {"A+A+|bcdefg", 0, 2},
	    /* of those that have sent a part after it none keeps out a new one */
	    {"A*B*C*D+", 0, 1},
	    {"D+A*B*C*", 1, 1},
	    {"D+A*B*", 0, 1},
	    {"D+E+A*B*C*", 0, 1},
	    {"A*b+c+d+", 1, 1},
	};
	struct hoarded list[HOARD_MAX];
	struct hoard_rank rank;
	size_t i, n, ripe, pick;

	for (i = 0; i < COUNT(table); i++) {
		n = parse(table[i].list, list, &ripe);
		pick = hoard_pick(&seed, list, n, ripe, &rank);
		if (pick != (table[i].pick == NONE ? HOARD_NONE
						   : (size_t)table[i].pick) ||
		    rank.hr_count != table[i].most)
			fail_msg("%s: %d of %u", table[i].list, (int)pick,
			    rank.hr_count);
	}
}

/* So many connections of so many addresses that differ in the bits from shift on. */
struct group {
	uint64_t gr_key;
	unsigned gr_shift;
	unsigned gr_addresses;
	unsigned gr_each;
};

static size_t
fill(struct hoarded *list, const struct group *gr)
{
	size_t n = 0;
	unsigned i, k;

	for (i = 0; i < gr->gr_addresses; i++)
		for (k = 0; k < gr->gr_each; k++)
			list[n++] = (struct hoarded){
			    gr->gr_key + ((uint64_t)i << gr->gr_shift),
			    HOARD_PART, false};
	return n;
}

/* IPv4: /32, /24, /16; IPv6: /64, /56, /48 (client_key.h). */
TEST(addresses_of_one_network_are_no_group_of_clients)
{
	static const uint64_t v4 = 0xffff7f000000, v6 = 0x20010db800000000,
			      other = 0x20010db900000000;
	static const struct {
		struct group honest, hoard;
		bool hoard_goes;
	} table[] = {
	    /* a household with several connections, and a /56 or /48 of single ones */
	    {{other, 0, 1, 6}, {v6, 0, 40, 1}, true},
	    {{other, 0, 1, 6}, {v6, 8, 60, 1}, true},
	    {{other, 0, 1, 6}, {v6, 16, 60, 1}, false},
	    {{other, 0, 1, 6}, {v4, 0, 40, 1}, true},
	    /* three of a network are not two of an address */
	    {{other, 0, 1, 1}, {v6, 0, 5, 1}, true},
	    {{v6, 0, 3, 1}, {other, 0, 1, 2}, true},
	    {{v4, 8, 12, 1}, {other, 0, 1, 2}, true},
	    /* in one network the address with more */
	    {{v4, 0, 9, 1}, {v4 + 9, 0, 1, 2}, true},
	};
	struct hoarded list[HOARD_MAX];
	struct hoard_rank rank;
	size_t i, n, honest;

	for (i = 0; i < COUNT(table); i++) {
		honest = fill(list, &table[i].honest);
		n = honest + fill(list + honest, &table[i].hoard);
		if ((hoard_pick(&seed, list, n, n, &rank) >= honest) !=
		    table[i].hoard_goes)
			fail_msg("line %zu of the table", i);
	}
}

/* Each of an address of its own, but for two: wherever these are. */
TEST(two_connections_of_one_address_are_found_among_many)
{
	struct hoarded list[HOARD_MAX] = {0};
	struct hoard_rank rank;
	size_t first, i;

	for (first = 0; first < HOARD_MAX - 1; first++) {
		for (i = 0; i < HOARD_MAX; i++)
			list[i] = (struct hoarded){.ho_key = i << 16};
		list[HOARD_MAX - 1].ho_key = first << 16;
		list[first].ho_progress = HOARD_PART;
		assert_int_equal(
		    hoard_pick(&seed, list, HOARD_MAX, HOARD_MAX, &rank),
		    HOARD_MAX - 1);
		assert_int_equal(rank.hr_count, 2);
		list[HOARD_MAX - 1].ho_progress = HOARD_PART;
		assert_int_equal(
		    hoard_pick(&seed, list, HOARD_MAX, HOARD_MAX, &rank),
		    first);
	}
}
