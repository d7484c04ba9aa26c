/*
 * How much is fetched at once, and how early (lib/send/window_size.h).
 */
#include "test.h"

#include "lib/send/window_size.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

struct size_case {
	struct window_facts
	    sc_facts; /* bytes/s, a guess, microseconds, plenty, seeks, last lead */
	size_t sc_size;
	size_t sc_lead;
};

static const struct size_case cases[] = {
    /* memory is plenty: always the whole */
    {{0, false, 0, true, false, 0}, 2 * MIB, MIB},
    {{1, false, 1000, true, false, 0}, 2 * MIB, 64 * KIB},
    {{100 * MIB, false, 10000, true, false, 0}, 2 * MIB, 2 * MIB},
    {{1000 * MIB, false, 10000, true, false, 0}, 2 * MIB, 8 * 2 * MIB},
    /* it is not, and of the client nothing is known */
    {{0, true, 0, false, false, 0}, 256 * KIB, 128 * KIB},
    {{0, true, 1000000, false, false, 0}, 256 * KIB, 128 * KIB},
    /* half a second */
    {{125000, false, 1000, false, false, 0}, 64 * KIB, 64 * KIB},
    {{MIB, false, 1000, false, false, 0}, 512 * KIB, 64 * KIB},
    {{MIB + 4, false, 1000, false, false, 0}, MIB, 64 * KIB},
    {{4 * MIB, false, 0, false, false, 0}, 2 * MIB, 64 * KIB},
    /* four times the device's latency */
    {{MIB, false, 250000, false, false, 0}, MIB, 512 * KIB},
    {{MIB, false, 2000000, false, false, 0}, 2 * MIB, 4 * MIB},
    /* what others take is a guess */
    {{125000, true, 1000, false, false, 0}, 64 * KIB, 64 * KIB},
    {{1000 * MIB, true, 1000, false, false, 0}, 256 * KIB, 2000 * MIB / 1000},
    {{1000 * MIB, true, 1000, true, false, 0}, 2 * MIB, 2 * MIB},
    /* four seconds on a disk that seeks, whatever its latency, and of guesses */
    {{125000, false, 0, false, true, 0}, 512 * KIB, 500000},
    {{125000, true, 3000000, false, true, 0}, 2 * MIB, MIB},
    {{625000, true, 1000, false, true, 0}, 2 * MIB, 2500000},
    {{1000, false, 1000, false, true, 0}, 64 * KIB, 64 * KIB},
    {{0, true, 0, false, true, 0}, 2 * MIB, MIB},
    {{1, false, 0, true, true, 0}, 2 * MIB, MIB},
    {{1000 * MIB, false, 0, false, true, 0}, 2 * MIB, 4 * 2 * MIB},
    /* falls by a quarter, and not below what the rate asks for or above the windows */
    {{MIB, false, 1000, true, false, 16 * MIB}, 2 * MIB, 12 * MIB},
    {{1000 * MIB, false, 1000, true, false, 2 * MIB}, 2 * MIB, 2 * MIB},
    {{1000 * MIB, false, 2000, true, false, 4 * MIB}, 2 * MIB, 4 * MIB},
    {{MIB, false, 1000, true, false, 2 * MIB}, 2 * MIB, 64 * KIB},
    {{MIB, false, 0, false, false, 16 * MIB}, 512 * KIB, 8 * 512 * KIB},
    {{625000, true, 1000, false, true, 8 * MIB}, 2 * MIB, 2500000},
    /* what does not fit into a number */
    {{UINT64_MAX, false, UINT64_MAX / 8, false, false, 0}, 2 * MIB,
	8 * 2 * MIB},
};

TEST(a_window_has_the_bytes_that_the_client_reads_meanwhile)
{
	const struct size_case *sc;

	for (sc = cases; sc < cases + COUNT(cases); sc++) {
		if (window_size(&sc->sc_facts) != sc->sc_size)
			fail_msg("case %zu: size %zu", (size_t)(sc - cases),
			    window_size(&sc->sc_facts));
		if (window_lead(&sc->sc_facts, sc->sc_size) != sc->sc_lead)
			fail_msg("case %zu: lead %zu", (size_t)(sc - cases),
			    window_lead(&sc->sc_facts, sc->sc_size));
	}
}
