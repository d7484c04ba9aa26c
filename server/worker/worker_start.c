/*
 * worker_start: creates, starts, commands and ends workers, for main.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "lib/os/seed.h"
#include "lib/util/cacheline.h"
#include "lib/util/clock.h"

#include "server/worker/evict.h"
#include "server/content/exchange.h"
#include "server/content/autoindex_cache.h"
#include "server/content/popular.h"
#include "server/content/response.h"
#include "server/content/response_cache.h"
#include "server/http/digest.h"
#include "server/http/range.h"
#include "server/util/hmac.h"
#include "server/worker/listener.h"
#include "server/worker/worker.h"

#define LINGER_US   5000000 /* TIMER_LINGER, microseconds */
#define GRACE_US    1000000 /* TIMER_GRACE, microseconds */
/* 1/16 of the memory is for listings of all workers */
#define LISTINGS    16
#define SECOND_US   ((uint64_t)1000000)
/* part of disk_timeout that a client which closed its side waits for the response to begin */
#define CLOSED_PART 30
/* maximum of hot_set if not configured, bytes */
#define HOT_SET	    ((uint64_t)16 << 20)
#define HOT_PART    16 /* 1/16 of the memory, for all workers */
#define LOOK	    ((uint64_t)64 << 10) /* value of wk_look, bytes */

static void
worker_start_on_device(void *arg, const char *message)
{
	struct worker *wk = arg;

	log_notice(wk->wk_service.svc_log, "%s", message);
}

static int
worker_start_create_loop(struct worker *wk)
{
	struct pw_loop_conf conf = {
	    .plc_open_files = wk->wk_service.svc_conf->conf_open_files,
	    .plc_device = worker_start_on_device,
	    .plc_arg = wk,
	    .plc_attribute = DIGEST_ATTRIBUTE,
	    .plc_client = response_client,
	};
	int error;

	wk->wk_service.svc_listings =
	    autoindex_cache_create(wk->wk_heap->hl_limit / LISTINGS /
				   wk->wk_service.svc_conf->conf_workers);
	if (wk->wk_service.svc_listings == NULL)
		return -ENOMEM;
	error = pw_loop_create(wk->wk_pool, &conf, &wk->wk_service.svc_loop);
	release_init(&wk->wk_release, wk->wk_service.svc_loop);
	return error;
}

static int
worker_start_create_base(struct worker *wk)
{
	struct event_config *config = event_config_new();

	if (config == NULL)
		return -ENOMEM;
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	wk->wk_base = event_base_new_with_config(config);
	event_config_free(config);
	if (wk->wk_base == NULL)
		return -ENOMEM;
	wk->wk_sees_end = (event_base_get_features(wk->wk_base) &
			      EV_FEATURE_EARLY_CLOSE) != 0;
	return 0;
}

static void
worker_start_set_timeouts(struct worker *wk)
{
	const struct conf *conf = wk->wk_service.svc_conf;

	wk->wk_sched.sc_timeouts[TIMER_HEAD] =
	    conf->conf_head_timeout * SECOND_US;
	wk->wk_sched.sc_timeouts[TIMER_IDLE] =
	    conf->conf_keepalive_timeout * SECOND_US;
	wk->wk_sched.sc_timeouts[TIMER_REST] =
	    conf->conf_send_timeout * SECOND_US;
	wk->wk_sched.sc_timeouts[TIMER_SEND] =
	    conf->conf_send_timeout * SECOND_US;
	wk->wk_sched.sc_timeouts[TIMER_DISK] =
	    conf->conf_disk_timeout * SECOND_US / DISK_LOOKS;
	wk->wk_sched.sc_timeouts[TIMER_CLOSED] =
	    conf->conf_disk_timeout * SECOND_US / CLOSED_PART;
	wk->wk_sched.sc_timeouts[TIMER_LINGER] = LINGER_US;
	wk->wk_sched.sc_timeouts[TIMER_GRACE] = GRACE_US;
}

size_t
worker_hot_set(const struct conf *conf)
{
	struct os_memory om;
	uint64_t share;

	if (conf->conf_hot_set != HOT_SET_AUTO)
		return (size_t)conf->conf_hot_set;
	os_memory(&om);
	share = om.om_bytes / HOT_PART / conf->conf_workers;
	return (size_t)(share < HOT_SET ? share : HOT_SET);
}

static int
worker_start_create_responses(struct worker *wk)
{
	size_t size = worker_hot_set(wk->wk_service.svc_conf);

	if (size == 0)
		return 0;
	wk->wk_service.svc_responses = response_cache_create(size);
	wk->wk_header_cache = header_cache_create();
	return wk->wk_service.svc_responses == NULL ||
		       wk->wk_header_cache == NULL
		   ? -ENOMEM
		   : 0;
}

static int
worker_start_create_popular(struct worker *wk)
{
	struct service *svc = &wk->wk_service;
	unsigned wanted = svc->svc_conf->conf_popular;
	struct seed seed;

	if (wanted == 0)
		return 0;
	if (svc->svc_responses != NULL)
		seed = *response_cache_seed(svc->svc_responses);
	else
		seed_draw(&seed);
	svc->svc_popular = popular_create(wanted, &seed, clock_now());
	return svc->svc_popular != NULL ? 0 : -ENOMEM;
}

static int
worker_start_create_hmac(struct worker *wk)
{
	if (!conf_has_secrets(wk->wk_service.svc_conf))
		return 0;
	wk->wk_service.svc_hmac = hmac_create();
	return wk->wk_service.svc_hmac != NULL ? 0 : -ENOMEM;
}

/* Returns the index of the site with this name; the first site is the default. */
static size_t
worker_start_find_site(const void *arg, const char *name, size_t len)
{
	const struct conf *conf = arg;

	return (size_t)(conf_site(conf, name, len) - conf->conf_sites);
}

static int
worker_start_create_tls(struct worker *wk, const struct shared *sh)
{
	const struct conf *conf = sh->sh_conf;
	struct tls_settings tc = {
	    .tc_profile = conf->conf_tls_profile,
	    .tc_ktls = conf->conf_ktls,
	    .tc_http2 = conf->conf_http2,
	    .tc_tickets = sh->sh_tickets,
	    .tc_nsites = conf->conf_nsites,
	    .tc_find = worker_start_find_site,
	    .tc_arg = conf,
	};
	const struct tls_site **sites =
	    calloc(tc.tc_nsites, sizeof(struct tls_site *));
	char why[512];
	int error;

	if (sites == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < tc.tc_nsites; i++)
		sites[i] = &conf->conf_sites[i].site_tls;
	tc.tc_sites = sites;
	wk->wk_handshaker = sh->sh_handshaker;
	error = tls_context_create(&tc, &wk->wk_tls, why, sizeof(why));
	if (error != 0)
		log_error(NULL, "%s", why);
	free(sites);
	return error;
}

/* Frees a descriptor for a request that would otherwise be refused. */
static bool
worker_start_spare(void *arg)
{
	return evict_at_once(arg);
}

static void
worker_start_watch_sockets(struct worker *wk, struct tcp_memory *pr)
{
	wk->wk_tcp_memory = pr;
	unacked_init(&wk->wk_unacked,
	    pr->pr_share / wk->wk_service.svc_conf->conf_workers);
	wk->wk_look = pr->pr_share > 0 ? 0 : LOOK;
}

int
worker_create(const struct shared *sh, unsigned id, struct worker **out)
{
	const struct conf *conf = sh->sh_conf;
	struct worker *wk;
	int error;

	wk = cacheline_calloc(sizeof(*wk));
	if (wk == NULL)
		return -ENOMEM;
	wk->wk_service.svc_conf = conf;
	wk->wk_pool = sh->sh_pool;
	wk->wk_accept = sh->sh_accept;
	wk->wk_service.svc_roots = sh->sh_roots;
	wk->wk_service.svc_health = sh->sh_health;
	wk->wk_clients = sh->sh_clients;
	worker_start_watch_sockets(wk, sh->sh_tcp_memory);
	wk->wk_heap = sh->sh_heap;
	wk->wk_service.svc_verifier = sh->sh_verifier;
	wk->wk_service.svc_rates = sh->sh_rates;
	wk->wk_service.svc_spare = worker_start_spare;
	wk->wk_service.svc_arg = wk;
	wk->wk_service.svc_log = log_writer(sh->sh_log, id);
	wk->wk_id = id;
	wk->wk_orders.od_wake[0] = -1;
	sched_init(&wk->wk_sched);
	worker_start_set_timeouts(wk);
	seed_draw(&wk->wk_seed);
	wk->wk_service.svc_boundary =
	    (uint64_t)getpid() << 40 ^ clock_now() << 8 ^ id;
	wk->wk_service.svc_ranges =
	    calloc(RANGE_MOST, sizeof(*wk->wk_service.svc_ranges));
	wk->wk_frames = malloc(WORKER_FRAMES);
	error = wk->wk_service.svc_ranges == NULL || wk->wk_frames == NULL
		    ? -ENOMEM
		    : worker_start_create_hmac(wk);
	if (error == 0)
		error = commands_create(&wk->wk_orders);
	if (error == 0) {
		limits_join(sh->sh_clients, id, &wk->wk_orders);
		error = worker_start_create_loop(wk);
	}
	if (error == 0)
		error = worker_start_create_responses(wk);
	if (error == 0)
		error = worker_start_create_popular(wk);
	if (error == 0 && sh->sh_handshaker != NULL)
		error = worker_start_create_tls(wk, sh);
	if (error == 0)
		error = worker_start_create_base(wk);
	if (error == 0)
		error = worker_watch(wk);
	if (error != 0) {
		worker_destroy(&wk);
		return error;
	}
	*out = wk;
	return 0;
}

int
worker_start(struct worker *wk)
{
	listener_start(wk);
	return thread_start(&wk->wk_thread, worker_main, wk);
}

void
worker_command(struct worker *wk, enum command order)
{
	commands_give(&wk->wk_orders, order);
}

bool
worker_join(struct worker *wk, uint64_t timeout_us)
{
	return thread_join(&wk->wk_thread, timeout_us);
}

void
worker_abandon(struct worker *wk)
{
	thread_abandon(&wk->wk_thread);
}

void
worker_destroy(struct worker **wkp)
{
	struct worker *wk = *wkp;

	if (wk == NULL)
		return;
	*wkp = NULL;
	listener_close(wk);
	if (event_initialized(&wk->wk_sched.sc_again)) {
		event_del(&wk->wk_done);
		event_del(&wk->wk_control);
		event_del(&wk->wk_tick);
		event_del(&wk->wk_sched.sc_again);
		event_del(&wk->wk_sched.sc_pause);
		event_del(&wk->wk_retry);
	}
	autoindex_cache_destroy(&wk->wk_service.svc_listings);
	pw_loop_destroy(&wk->wk_service.svc_loop);
	if (wk->wk_base != NULL)
		event_base_free(wk->wk_base);
	if (wk->wk_orders.od_wake[0] != -1)
		commands_destroy(&wk->wk_orders);
	tls_context_destroy(&wk->wk_tls);
	service_end(&wk->wk_service);
	free(wk->wk_header_cache);
	free(wk->wk_frames);
	free(wk);
}
