/*
 * conf: builds the configuration from the defaults, the top level of the files, the command line,
 * and the sites, in this order.  Sites inherit the top level.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/conf/conf_priv.h"

static int
conf_out_of_memory(void)
{
	fprintf(
	    stderr, "%spagewise: %s\n", log_error_prefix(), strerror(ENOMEM));
	return -ENOMEM;
}

/* Creates the configuration and its top level, with the defaults. */
static int
conf_init_top(struct conf_scope *top, struct settings *set)
{
	struct conf *conf = calloc(1, sizeof(*conf));

	memset(top, 0, sizeof(*top));
	top->cs_where = KEY_TOP;
	top->cs_conf = conf;
	top->cs_set = set;
	return conf != NULL ? conf_key_defaults(top) : conf_out_of_memory();
}

static int
conf_finish_listen(struct conf_scope *top, struct conf_why *why)
{
	struct conf *conf = top->cs_conf;
	int error = 0;

	conf->conf_listen_default = conf->conf_nlisten == 0;
	if (conf->conf_listen_default)
		error = conf_key_set(top, "listen", "*:8080", why);
	return error == 0 ? conf_check_listen(conf, why) : error;
}

static void
conf_top_fault(struct conf_scope *top, int error, const char *key,
    const struct conf_why *why)
{
	if (error != 0)
		conf_say_at(top->cs_conf, conf_place(top->cs_set, key, 0),
		    "%s: %s", key, why->why_text);
}

/* Completes and checks the top level, once all keys are set. */
static int
conf_complete_top(struct conf_scope *top)
{
	struct conf *conf = top->cs_conf;
	struct conf_why why;

	conf_top_fault(top, conf_finish_listen(top, &why), "listen", &why);
	conf_top_fault(top, conf_check_admin(conf, &why), "admin", &why);
	conf_top_fault(top, conf_check_agent(conf, &why), "agent", &why);
	conf_top_fault(
	    top, conf_check_proxies(conf, &why), "client_address", &why);
	conf_top_fault(top, conf_check_health(conf, &why), "ready", &why);
	conf_top_fault(top, conf_complete_user(conf, &why), "group", &why);
	if (conf->conf_mime == NULL)
		conf->conf_mime = mime_builtin();
	return conf->conf_mime != NULL ? 0 : conf_out_of_memory();
}

/* Derives the dependent fields of settings, and checks them.  Call once all keys are set. */
static int
conf_complete_settings(
    struct conf *conf, struct settings *set, struct conf_why *why)
{
	int error;

	why->why_key = "types";
	error = conf_complete_types(conf, set, why);
	if (error == 0) {
		why->why_key = "header";
		error = conf_complete_headers(conf, set, why);
	}
	if (error == 0)
		error = conf_complete_scheme(conf, set, why);
	if (error == 0) {
		why->why_key = "realm";
		error = conf_complete_access(conf, set, why);
	}
	if (error == 0) {
		why->why_key = "error_page";
		error = conf_complete_pages(conf, set, why);
	}
	return error;
}

/*
 * Completes settings.  Logs a fault unless its line is *place, the line of the last fault, since
 * several sections may inherit a faulty line.
 */
static int
conf_complete_settings_once(struct conf *conf, struct settings *set,
    const char *name, const char **place)
{
	struct conf_why why = {.why_key = NULL};
	int error = conf_complete_settings(conf, set, &why);
	const char *at;

	if (error == 0)
		return 0;
	at = conf_place(set, why.why_key, 0);
	if (at != *place)
		conf_say_at(conf, at, "%s: site \"%s\": %s", why.why_key, name,
		    why.why_text);
	*place = at;
	return error;
}

static void
conf_tls_fault(struct conf *conf, int error, const struct settings *set,
    const struct conf_why *why)
{
	if (error != 0)
		conf_say_at(conf, conf_place(set, why->why_key, why->why_after),
		    "%s: %s", why->why_key, why->why_text);
}

static void
conf_finish_tls_site(struct conf *conf, struct site *site)
{
	struct conf_why why = {.why_key = "certificate"};

	conf_tls_fault(
	    conf, conf_complete_tls(conf, site, &why), &site->site_set, &why);
}

static void
conf_finish_tls(struct conf *conf)
{
	struct conf_why why = {.why_key = "listen"};

	conf_tls_fault(conf, conf_check_tls(conf, &why),
	    &conf->conf_sites[0].site_set, &why);
}

bool
conf_certificates_are_good(const struct conf *conf)
{
	bool good = true;
	time_t now = time(NULL);
	char why[512];

	for (size_t i = 0; i < conf->conf_nidentities; i++) {
		if (identity_is_good(
			conf->conf_identities[i], now, why, sizeof(why)))
			continue;
		conf_say_at(NULL,
		    conf_identity_place(conf, conf->conf_identities[i]),
		    "certificate: %s", why);
		good = false;
	}
	return good;
}

/* Completes the settings of responses that belong to no site. */
static void
conf_complete_no_site(struct conf *conf, const struct settings *top)
{
	struct settings *set = &conf->conf_no_site;
	struct conf_why why = {.why_key = "header"};
	int error;

	*set = *top;
	error = conf_complete_types(conf, set, &why);
	if (error == 0)
		error = conf_complete_headers(conf, set, &why);
	if (error == 0)
		error = conf_complete_pages(conf, set, &why);
	if (error != 0)
		conf_say_at(conf, conf_place(set, why.why_key, 0), "%s: %s",
		    why.why_key, why.why_text);
}

static void
conf_complete_sites(struct conf *conf, const struct settings *top)
{
	const char *place = NULL;
	int error;

	for (size_t i = 0; i < conf->conf_nsites; i++) {
		struct site *site = &conf->conf_sites[i];

		error = conf_complete_settings_once(
		    conf, &site->site_set, site->site_name, &place);
		for (size_t j = 0; j < site->site_nlocations; j++)
			error |= conf_complete_settings_once(conf,
			    &site->site_locations[j].loc_set, site->site_name,
			    &place);
		if (error != 0)
			continue;
		conf_complete_site(site);
		conf_finish_tls_site(conf, site);
	}
	if (conf->conf_faults == 0)
		conf_complete_no_site(conf, top);
	if (conf->conf_faults == 0)
		conf_finish_tls(conf);
}

/*
 * Builds the configuration and logs all faults of the files.  Checks that need all keys run only if
 * the files have no fault.
 */
static enum conf_action
conf_build(const struct conf_args *args, const struct conf_files *files,
    struct conf_scope *top)
{
	struct conf *conf = top->cs_conf;
	struct conf_why why;

	if (files != NULL)
		conf_files_top(files, top);
	if (conf->conf_faults == 0 &&
	    (conf_args_apply(args, top) != 0 || !conf_args_serve(args)))
		return CONF_EXIT_USAGE;
	if (conf->conf_faults == 0 && conf_complete_top(top) != 0)
		return CONF_EXIT_ERROR;
	if (args->arg_root == NULL)
		conf_files_sites(files, top);
	else if (conf->conf_faults == 0 && conf_args_site(args, top) != 0)
		return CONF_EXIT_USAGE;
	if (conf->conf_faults == 0)
		conf_complete_sites(conf, top->cs_set);
	if (conf->conf_faults == 0)
		conf_top_fault(top, conf_check_tier(conf, &why), "tier", &why);
	return conf->conf_faults == 0 ? CONF_RUN : CONF_EXIT_ERROR;
}

/* Makes the final checks and prints the report of -t or -T. */
static enum conf_action
conf_report(const struct conf_args *args, const struct conf_checks *checks,
    const struct conf *conf)
{
	int error = 0;

	if (!conf_certificates_are_good(conf))
		return CONF_EXIT_ERROR;
	if (checks != NULL && checks->ck_try != NULL &&
	    checks->ck_try(conf) != 0)
		return CONF_EXIT_ERROR;
	if (args->arg_dump) {
		error = conf_dump_print(conf);
	} else {
		if (args->arg_config != NULL)
			printf("configuration ok: %s\n", args->arg_config);
		else
			printf("configuration ok\n");
		if (checks != NULL && checks->ck_print != NULL)
			checks->ck_print(conf);
		conf_summary(conf);
	}
	/* A write error must fail the check, as the report would be incomplete. */
	if (error == 0 && fflush(stdout) != 0)
		error = -errno;
	if (error == 0)
		return CONF_EXIT_OK;
	fprintf(stderr, "%spagewise: cannot write to standard output: %s\n",
	    log_error_prefix(), strerror(-error));
	return CONF_EXIT_ERROR;
}

enum conf_action
conf_load(
    int argc, char **argv, const struct conf_checks *checks, struct conf **out)
{
	struct settings set = {0};
	struct conf_scope top = {0};
	struct conf_args args;
	struct conf_files *files = NULL;
	enum conf_action action;
	int error;

	*out = NULL;
	action = conf_args_parse(argc, argv, &args);
	if (action != CONF_RUN)
		goto done;
	action = CONF_EXIT_ERROR;
	if (conf_init_top(&top, &set) != 0)
		goto done;
	if (args.arg_config != NULL &&
	    conf_files_open(top.cs_conf, args.arg_config, &files) != 0)
		goto done;
	if (args.arg_dump && (error = conf_dump_begin(top.cs_conf)) != 0) {
		fprintf(stderr, "%spagewise: -T: %s\n", log_error_prefix(),
		    strerror(-error));
		goto done;
	}
	action = conf_build(&args, files, &top);
	if (action != CONF_RUN)
		goto done;
	if (args.arg_test) {
		action = conf_report(&args, checks, top.cs_conf);
		goto done;
	}
	*out = top.cs_conf;
	top.cs_conf = NULL;
done:
	conf_destroy(&top.cs_conf);
	conf_files_close(&files);
	conf_args_free(&args);
	return action;
}

void
conf_destroy(struct conf **confp)
{
	struct conf *conf = *confp;
	size_t i;

	if (conf == NULL)
		return;
	conf_free_listen(conf);
	conf_free_admin(conf);
	conf_free_agent(conf);
	conf_free_tls(conf);
	for (i = 0; i < conf->conf_nsites; i++)
		conf_site_free(&conf->conf_sites[i]);
	free(conf->conf_sites);
	text_index_free(&conf->conf_titles);
	text_index_free(&conf->conf_hosts);
	text_index_free(&conf->conf_root_index);
	for (i = 0; i < conf->conf_ntypes; i++)
		mime_destroy(&conf->conf_types[i].ct_mime);
	free(conf->conf_types);
	conf_free_access(conf);
	conf_keep_free(&conf->conf_memory);
	free(conf->conf_access_log);
	free(conf->conf_user);
	free(conf->conf_group);
	free(conf->conf_groups);
	free(conf->conf_chroot);
	free(conf->conf_tier);
	if (conf->conf_mime != NULL)
		mime_destroy(&conf->conf_mime);
	free(conf);
	*confp = NULL;
}
