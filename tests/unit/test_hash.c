/*
 * Hashes under a secret (lib/util/hash.h), and that what meets in one chain of a table does
 * not in another's: here the table of lib/file/negative_cache.c.
 */
#include "lib_fixture.h"

#include "lib/file/negative_cache.c"
#include "lib/os/seed.h"
#include "lib/util/hash.h"

#define NAMES 3000
#define LONG  24 /* of a chain: more in one table of 10^12 */

static const struct seed known = {0x0706050403020100U, 0x0f0e0d0c0b0a0908U};
static struct pw_root root = {.rt_dev = 1, .rt_ino = 2};

/* Of the bytes 0, 1, 2 ... as the authors' program and others have them. */
TEST(the_hash_is_siphash_1_3, NULL)
{
	static const struct {
		size_t len;
		uint64_t hash;
	} vectors[] = {
	    {0, 0xabac0158050fc4dcU},
	    {1, 0xc9f49bf37d57ca93U},
	    {7, 0xd3927d989bb11140U},
	    {8, 0x369095118d299a8eU},
	    {15, 0xd320d86d2a519956U},
	    {63, 0x9d199062b7bbb3a8U},
	};
	unsigned char bytes[64];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	for (size_t i = 0; i < COUNT(vectors); i++)
		assert_true(hash_bytes(&known, 0, bytes, vectors[i].len) ==
			    vectors[i].hash);
}

TEST(every_byte_the_length_the_salt_and_the_seed_count, NULL)
{
	struct seed other = known;
	char bytes[40] = {0};
	uint64_t hash;
	size_t len, i;

	other.se_0 ^= 1;
	for (len = 0; len < sizeof(bytes); len++) {
		hash = hash_bytes(&known, 0, bytes, len);
		assert_true(hash == hash_bytes(&known, 0, bytes, len));
		assert_true(hash != hash_bytes(&known, 0, bytes, len + 1));
		assert_true(hash != hash_bytes(&known, 1, bytes, len));
		assert_true(hash != hash_bytes(&other, 0, bytes, len));
		for (i = 0; i < len; i++) {
			bytes[i] ^= 1;
			assert_true(hash != hash_bytes(&known, 0, bytes, len));
			bytes[i] ^= 1;
		}
	}
}

/* Names that differ at their ends only, of every length. */
TEST(hashes_of_numbered_names_are_spread, NULL)
{
	static const char *const forms[] = {"/%04d", "/%05d", "/%06d", "/%07d",
	    "/%08d", "/%09d", "/%010d", "/%d.html", "/%05d.js"};
	unsigned count[4096], most;
	char name[32];
	int n, len;

	for (size_t i = 0; i < COUNT(forms); i++) {
		memset(count, 0, sizeof(count));
		for (most = 0, n = 0; n < 4096; n++) {
			len = snprintf(name, sizeof(name), forms[i], n);
			count[hash_bytes(&known, 0, name, (size_t)len) %
			      COUNT(count)]++;
		}
		for (n = 0; n < 4096; n++)
			most = count[n] > most ? count[n] : most;
		if (most > 10)
			fail_msg("%u like %s", most, name);
	}
}

TEST(each_seed_gives_another_hash, NULL)
{
	struct seed a, b;

	seed_draw(&a);
	seed_draw(&b);
	assert_true(a.se_0 != b.se_0 && a.se_1 != b.se_1);
}

static size_t
longest(struct negative_cache *ms)
{
	size_t i, n, most = 0;
	struct path *pa;

	for (i = 0; i < BUCKETS; i++) {
		n = 0;
		LIST_FOREACH(pa, &ms->ms_chains[i], pa_hash)
		n++;
		most = n > most ? n : most;
	}
	return most;
}

/* Those that a client would ask for who knew one loop's secret. */
TEST(names_that_collide_in_one_cache_do_not_in_another, NULL)
{
	struct negative_cache *ms = negative_create(),
			      *other = negative_create();
	char name[16];
	size_t n, i;

	assert_non_null(ms);
	assert_non_null(other);
	for (n = i = 0; n < NAMES; i++) {
		snprintf(name, sizeof(name), "%zx", i);
		if (negative_cache_chain(ms, &root, name) != &ms->ms_chains[0])
			continue;
		negative_add(ms, &root, name, -ENOENT, 0);
		negative_add(other, &root, name, -ENOENT, 0);
		n++;
	}
	assert_int_equal(longest(ms), NAMES);
	assert_in_range(longest(other), NAMES / BUCKETS, LONG);
	negative_destroy(&ms);
	negative_destroy(&other);
}
