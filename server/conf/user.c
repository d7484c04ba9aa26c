/*
 * user: the user to run as, and the directory of chroot.  Looks up the user before the process
 * switches to that user and before the program is locked in memory, since libc loads libraries for
 * the lookup.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/conf/conf_priv.h"

#define NO_GROUP ((gid_t)-1)
#define NOBODY	 65534 /* uid and gid if passwd(5) lacks user nobody */

static int
conf_user_replace(char **field, const char *text, struct conf_why *why)
{
	free(*field);
	*field = strdup(text);
	return *field != NULL ? 0 : conf_no_memory(why);
}

/* Parses an id.  Refuses the largest number, which means "no change" to setresuid(2). */
static bool
conf_user_is_id(const char *text, uint64_t *id)
{
	return conf_number(text, id) == 0 && *id < UINT32_MAX;
}

int
conf_set_user(struct conf_scope *scope, const struct key *key, const char *text,
    struct conf_why *why)
{
	struct conf *conf = scope->cs_conf;
	const struct passwd *pw = getpwnam(text);
	uint64_t id;

	(void)key;
	if (pw == NULL && conf_user_is_id(text, &id))
		pw = getpwuid((uid_t)id);
	else if (pw == NULL)
		return conf_why(why, -ENOENT, "there is no user \"%s\"", text);
	conf->conf_uid = pw != NULL ? pw->pw_uid : (uid_t)id;
	conf->conf_user_gid = pw != NULL ? pw->pw_gid : NO_GROUP;
	return conf_user_replace(
	    &conf->conf_user, pw != NULL ? pw->pw_name : text, why);
}

int
conf_set_group(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct conf *conf = scope->cs_conf;
	const struct group *gr = getgrnam(text);
	uint64_t id = 0;

	(void)key;
	if (gr == NULL && !conf_user_is_id(text, &id))
		return conf_why(why, -ENOENT, "there is no group \"%s\"", text);
	conf->conf_gid = gr != NULL ? gr->gr_gid : (gid_t)id;
	return conf_user_replace(&conf->conf_group, text, why);
}

int
conf_set_chroot(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct conf *conf = scope->cs_conf;
	struct stat st;

	(void)key;
	free(conf->conf_chroot);
	conf->conf_chroot = NULL;
	if (strcmp(text, "off") == 0)
		return 0;
	if (text[0] == '\0')
		return conf_why(
		    why, -EINVAL, "the path is empty (write \"off\" for none)");
	conf->conf_chroot = conf_path(scope->cs_dir, text);
	if (conf->conf_chroot == NULL)
		return conf_no_memory(why);
	if (stat(conf->conf_chroot, &st) == -1)
		return conf_why(
		    why, -errno, "%s: %s", conf->conf_chroot, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return conf_why(why, -ENOTDIR, "%s: %s", conf->conf_chroot,
		    strerror(ENOTDIR));
	return 0;
}

static int
conf_user_nobody(struct conf *conf, struct conf_why *why)
{
	const struct passwd *pw = getpwnam("nobody");

	conf->conf_uid = pw != NULL ? pw->pw_uid : NOBODY;
	conf->conf_user_gid = pw != NULL ? pw->pw_gid : NOBODY;
	return conf_user_replace(&conf->conf_user, "nobody", why);
}

/* Finds the user's groups.  The first getgrouplist(3) only counts them. */
static int
conf_user_find_groups(struct conf *conf, struct conf_why *why)
{
	int n = 0;

	getgrouplist(conf->conf_user, conf->conf_gid, NULL, &n);
	free(conf->conf_groups);
	conf->conf_groups = calloc((size_t)n + 1, sizeof(gid_t));
	if (conf->conf_groups == NULL)
		return conf_no_memory(why);
	if (getgrouplist(
		conf->conf_user, conf->conf_gid, conf->conf_groups, &n) == -1)
		return conf_why(why, -EAGAIN,
		    "the groups of user %s changed while they were read: start "
		    "pagewise again",
		    conf->conf_user);
	conf->conf_ngroups = (size_t)n;
	return 0;
}

int
conf_complete_user(struct conf *conf, struct conf_why *why)
{
	int error = 0;

	if (conf->conf_group != NULL && conf->conf_user == NULL)
		return conf_why(
		    why, -EINVAL, "user is not set: set user as well");
	conf->conf_user_chosen = conf->conf_user != NULL;
	if (conf->conf_user == NULL && geteuid() == 0)
		error = conf_user_nobody(conf, why);
	if (error != 0 || conf->conf_user == NULL)
		return error;
	if (conf->conf_group == NULL)
		conf->conf_gid = conf->conf_user_gid;
	if (conf->conf_gid == NO_GROUP)
		return conf_why(why, -EINVAL,
		    "user %s has no entry in passwd(5): set group as well",
		    conf->conf_user);
	return conf_user_find_groups(conf, why);
}
