/*
 * Tests of server/http2/flood.h.
 */
#include "test.h"

#include "server/http2/flood.h"

#define SECOND UINT64_C(1000000)

/* How many can be paid for at this time. */
static unsigned
payable(struct h2_flood *fl, unsigned tokens, uint64_t now)
{
	unsigned n = 0;

	while (n < 10 * H2_FLOOD_MOST && h2_flood_pay(fl, tokens, now))
		n++;
	return n;
}

TEST(client_starts_with_credit_and_earns_more_with_time)
{
	struct h2_flood fl;

	h2_flood_begin(&fl, 5 * SECOND);
	assert_int_equal(payable(&fl, 1, 5 * SECOND), H2_FLOOD_MOST);
	assert_int_equal(payable(&fl, 1, 5 * SECOND + 2499), 0);
	/* Time that was too short for one is not lost. */
	assert_int_equal(payable(&fl, 1, 5 * SECOND + 2500), 1);
	assert_int_equal(payable(&fl, 1, 6 * SECOND), H2_FLOOD_PER_S - 1);
	assert_int_equal(payable(&fl, 1, 1000 * SECOND), H2_FLOOD_MOST);
}

TEST(reset_costs_more)
{
	struct h2_flood fl;

	h2_flood_begin(&fl, 0);
	assert_int_equal(
	    payable(&fl, H2_FLOOD_RESET, 0), H2_FLOOD_MOST / H2_FLOOD_RESET);
	assert_int_equal(payable(&fl, H2_FLOOD_RESET, SECOND),
	    H2_FLOOD_PER_S / H2_FLOOD_RESET);
}

TEST(download_earns_more_than_its_updates_cost)
{
	struct h2_flood fl;

	h2_flood_begin(&fl, 0);
	assert_int_equal(payable(&fl, 1, 0), H2_FLOOD_MOST);
	for (int i = 0; i < 100000; i++) {
		h2_flood_earn(&fl, 2 * H2_FLOOD_PER_BYTES);
		assert_true(h2_flood_pay(&fl, 1, 0));
		assert_true(h2_flood_pay(&fl, 1, 0));
	}
	assert_int_equal(payable(&fl, 1, 0), 0);
	h2_flood_earn(&fl, H2_FLOOD_PER_BYTES - 1);
	assert_int_equal(payable(&fl, 1, 0), 0);
	h2_flood_earn(&fl, 1);
	assert_int_equal(payable(&fl, 1, 0), 1);
	h2_flood_earn(&fl, UINT64_C(1) << 40);
	assert_int_equal(payable(&fl, 1, 0), H2_FLOOD_MOST);
}
