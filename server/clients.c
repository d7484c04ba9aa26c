/*
 * clients: see clients.h.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "lib/line.h"

#include "clients.h"

#define PARTS	((size_t)64)
#define BUCKETS ((size_t)1024) /* of each */
#define MOMENT	UINT64_C(500000)

struct client {
	LIST_ENTRY(client) cl_link;
	uint64_t cl_key;
	unsigned cl_count;
};

LIST_HEAD(client_list, client);

struct part {
	_Alignas(CACHE_LINE) pthread_mutex_t pt_lock;
	struct client_list pt_buckets[BUCKETS];
};

struct clients {
	unsigned cs_total_max;
	unsigned cs_each_max;
	uint64_t cs_secret; /* nobody can choose addresses for one bucket */
	struct part *cs_parts;
	atomic_uint cs_total;
	_Atomic uint64_t cs_wanted;
};

int
clients_create(unsigned total, unsigned per_address, struct clients **out)
{
	struct clients *cs = line_calloc(sizeof(*cs));
	size_t i;

	if (cs == NULL)
		return -ENOMEM;
	cs->cs_total_max = total;
	cs->cs_each_max = per_address;
	if (per_address > 0)
		cs->cs_parts = line_calloc(PARTS * sizeof(*cs->cs_parts));
	if (per_address > 0 && cs->cs_parts == NULL) {
		free(cs);
		return -ENOMEM;
	}
	for (i = 0; per_address > 0 && i < PARTS; i++)
		pthread_mutex_init(&cs->cs_parts[i].pt_lock, NULL);
	if (getrandom(&cs->cs_secret, sizeof(cs->cs_secret), GRND_NONBLOCK) < 0)
		cs->cs_secret = (uintptr_t)cs;
	*out = cs;
	return 0;
}

void
clients_destroy(struct clients **csp)
{
	struct clients *cs = *csp;
	size_t i;

	*csp = NULL;
	if (cs == NULL)
		return;
	for (i = 0; cs->cs_parts != NULL && i < PARTS; i++)
		pthread_mutex_destroy(&cs->cs_parts[i].pt_lock);
	free(cs->cs_parts);
	free(cs);
}

bool
clients_reserve(struct clients *cs)
{
	if (cs->cs_total_max == 0)
		return true;
	if (atomic_fetch_add(&cs->cs_total, 1) < cs->cs_total_max)
		return true;
	atomic_fetch_sub(&cs->cs_total, 1);
	return false;
}

void
clients_release(struct clients *cs)
{
	if (cs->cs_total_max > 0)
		atomic_fetch_sub(&cs->cs_total, 1);
}

static uint64_t
inet_key(const void *octets)
{
	uint32_t addr;

	memcpy(&addr, octets, sizeof(addr));
	return UINT64_C(0xffff) << 32 | ntohl(addr);
}

/* No IPv6 prefix of a network that there is begins with 32 bits like inet_key's. */
uint64_t
clients_key(const struct sockaddr *sa)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;
	uint64_t key = 0;
	int i;

	if (sa->sa_family == AF_INET)
		return inet_key(&in->sin_addr);
	if (sa->sa_family != AF_INET6)
		return 0;
	if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		return inet_key(&in6->sin6_addr.s6_addr[12]);
	for (i = 0; i < 8; i++)
		key = key << 8 | in6->sin6_addr.s6_addr[i];
	return key;
}

/* The finalizer of MurmurHash3. */
static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
	x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

static struct part *
part_of(struct clients *cs, uint64_t key, struct client_list **bucket)
{
	uint64_t hash = mix(mix(key ^ cs->cs_secret) + cs->cs_secret);
	struct part *pt = &cs->cs_parts[hash % PARTS];

	*bucket = &pt->pt_buckets[hash / PARTS % BUCKETS];
	return pt;
}

/* The part's lock is held. */
static int
count_in(struct clients *cs, struct client_list *bucket, uint64_t key,
    struct client **out)
{
	struct client *cl;

	LIST_FOREACH(cl, bucket, cl_link)
	if (cl->cl_key == key)
		break;
	if (cl == NULL) {
		cl = calloc(1, sizeof(*cl));
		if (cl == NULL)
			return -ENOMEM;
		cl->cl_key = key;
		LIST_INSERT_HEAD(bucket, cl, cl_link);
	}
	if (cl->cl_count == cs->cs_each_max)
		return -EDQUOT;
	cl->cl_count++;
	*out = cl;
	return 0;
}

int
clients_enter(
    struct clients *cs, const struct sockaddr *sa, struct client **out)
{
	uint64_t key = clients_key(sa);
	struct client_list *bucket;
	struct part *pt;
	int error;

	*out = NULL;
	if (cs->cs_each_max == 0)
		return 0;
	pt = part_of(cs, key, &bucket);
	pthread_mutex_lock(&pt->pt_lock);
	error = count_in(cs, bucket, key, out);
	pthread_mutex_unlock(&pt->pt_lock);
	return error;
}

void
clients_leave(struct clients *cs, struct client *cl)
{
	struct client_list *bucket;
	struct part *pt;

	clients_release(cs);
	if (cl == NULL)
		return;
	pt = part_of(cs, cl->cl_key, &bucket);
	pthread_mutex_lock(&pt->pt_lock);
	if (--cl->cl_count == 0)
		LIST_REMOVE(cl, cl_link);
	else
		cl = NULL;
	pthread_mutex_unlock(&pt->pt_lock);
	free(cl);
}

void
clients_want(struct clients *cs, uint64_t now_us)
{
	atomic_store(&cs->cs_wanted, now_us);
}

bool
clients_wanted(struct clients *cs, uint64_t now_us)
{
	uint64_t since = atomic_load(&cs->cs_wanted);

	return since > 0 && now_us - since < MOMENT;
}

void
clients_given(struct clients *cs)
{
	atomic_store(&cs->cs_wanted, 0);
}
