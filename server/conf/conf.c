/*
 * conf: defaults, then the file's top level, then the command line, then the
 * sites, which inherit the result.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"

static int
out_of_memory(void)
{
	fprintf(stderr, "pagewise: %s\n", strerror(ENOMEM));
	return -ENOMEM;
}

static int
build_init(struct conf_build *b)
{
	struct conf *conf = calloc(1, sizeof(*conf));

	memset(b, 0, sizeof(*b));
	b->cb_conf = conf;
	if (conf == NULL || conf_strv_add(&b->cb_set.set_index, "index.html"))
		return out_of_memory();
	b->cb_set.set_readahead = PW_READAHEAD_AUTO;
	b->cb_set.set_cache = PW_CACHE_KEEP;

	conf->conf_threads = 16;
	conf->conf_stall_log = 50;
	conf->conf_head_timeout = 10;
	conf->conf_keepalive_timeout = 60;
	conf->conf_send_timeout = 60;
	conf->conf_disk_timeout = 30;
	conf->conf_shutdown_timeout = 30;
	conf->conf_max_head = (size_t)16 << 10;
	conf->conf_max_target = (size_t)8 << 10;
	conf->conf_max_fields = 100;
	conf->conf_max_ranges = 32;
	conf->conf_min_send_rate = 240;
	conf->conf_tcp_memory = TCP_MEMORY_AUTO;
	conf->conf_open_files = 1024;
	conf->conf_hot_set = (size_t)16 << 20;
	conf->conf_sandbox = true;
	conf->conf_keep_fowner = true;
	return 0;
}

/* Defaults that cost something to find, or that can fail. */
static int
build_complete(struct conf_build *b)
{
	struct conf *conf = b->cb_conf;
	const char *key = "workers";
	struct conf_why why;
	int error = 0;

	if (conf->conf_workers == 0)
		error = conf_set_top(b, key, "auto", &why);
	conf->conf_listen_default = conf->conf_nlisten == 0;
	if (error == 0 && conf->conf_listen_default)
		error = conf_set_top(b, key = "listen", "*:8080", &why);
	if (error == 0 && b->cb_set.set_send_path == NULL)
		error = conf_set_top(b, key = "send_path", "auto", &why);
	if (error == 0) {
		key = "admin";
		error = conf_check_admin(conf, &why);
	}
	if (error == 0) {
		key = "group";
		error = conf_complete_user(conf, &why);
	}
	if (error != 0) {
		fprintf(stderr, "pagewise: %s: %s\n", key, why.why_text);
		return error;
	}
	if (conf->conf_mime == NULL)
		conf->conf_mime = mime_builtin();
	return conf->conf_mime != NULL ? 0 : out_of_memory();
}

static enum conf_action
build(const struct conf_args *args, const struct conf_file *file,
    struct conf_build *b)
{
	if (file != NULL) {
		b->cb_dir = conf_file_dir(file);
		if (conf_file_top(file, b) != 0)
			return CONF_EXIT_ERROR;
		b->cb_dir = NULL;
	}
	if (conf_args_apply(args, b) != 0 || !conf_args_serve(args))
		return CONF_EXIT_USAGE;
	if (build_complete(b) != 0)
		return CONF_EXIT_ERROR;
	if (args->arg_root != NULL)
		return conf_args_site(args, b) != 0 ? CONF_EXIT_USAGE
						    : CONF_RUN;
	b->cb_dir = conf_file_dir(file);
	return conf_file_sites(file, b) != 0 ? CONF_EXIT_ERROR : CONF_RUN;
}

static void
report_ok(const struct conf_args *args)
{
	if (args->arg_config != NULL)
		printf("configuration ok: %s\n", args->arg_config);
	else
		printf("configuration ok\n");
}

enum conf_action
conf_load(int argc, char **argv, struct conf **out)
{
	struct conf_build b = {0};
	struct conf_args args;
	struct conf_file *file = NULL;
	enum conf_action action;

	*out = NULL;
	action = conf_args_parse(argc, argv, &args);
	if (action != CONF_RUN)
		goto done;
	action = CONF_EXIT_ERROR;
	if (args.arg_config != NULL &&
	    conf_file_open(args.arg_config, &file) != 0)
		goto done;
	if (build_init(&b) != 0)
		goto done;
	action = build(&args, file, &b);
	if (action != CONF_RUN)
		goto done;
	if (args.arg_test) {
		report_ok(&args);
		action = CONF_EXIT_OK;
		goto done;
	}
	*out = b.cb_conf;
	b.cb_conf = NULL;
done:
	conf_settings_free(&b.cb_set);
	conf_destroy(&b.cb_conf);
	conf_file_close(&file);
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
	conf_clear_listen(conf);
	conf_clear_admin(conf);
	for (i = 0; i < conf->conf_nsites; i++)
		conf_site_free(&conf->conf_sites[i]);
	free(conf->conf_sites);
	free(conf->conf_access_log);
	free(conf->conf_user);
	free(conf->conf_group);
	free(conf->conf_groups);
	free(conf->conf_chroot);
	if (conf->conf_mime != NULL)
		mime_destroy(&conf->conf_mime);
	free(conf);
	*confp = NULL;
}
