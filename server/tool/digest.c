/*
 * digest: see digest.h.
 */
#include "server/tool/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "server/http/digest.h"
#include "server/tool/attribute.h"
#include "server/tool/size_text.h"
#include "server/tool/temporary.h"

#define BLOCK ((size_t)256 << 10)
#define FULL  ((uint64_t)1 << 20) /* free bytes below which a device is full */

static struct digest_work *
tool_digest_own(const struct tool *to)
{
	return to->to_own;
}

static bool
tool_digest_wants(const struct tool *to, const char *name)
{
	(void)to;
	return !temporary_is(name);
}

/* ------------------------------------------------------------------------ hashing */

/*
 * Hashes the file.  Returns 0, -ESTALE if the file's length has changed, -ECANCELED if the run was
 * stopped, or another -errno.
 */
static int
tool_digest_hash_blocks(struct digest_work *dw, int fd, off_t size,
    EVP_MD_CTX *ctx, unsigned char *block)
{
	off_t off;
	ssize_t n;

	for (off = 0; off < size; off += n) {
		if (tool_stopped())
			return -ECANCELED;
		n = pread(fd, block, BLOCK, off);
		if (n == -1)
			return -errno;
		if (n == 0)
			return -ESTALE;
		if (EVP_DigestUpdate(ctx, block, (size_t)n) != 1)
			return -ENOMEM;
		dw->dw_read += (uint64_t)n;
	}
	return off == size ? 0 : -ESTALE;
}

/* OpenSSL's SHA-256, fetched once: EVP_sha256 would cost a search by name for each file. */
static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;
static EVP_MD *sha256;

static void
tool_digest_fetch_sha256(void)
{
	sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

/*
 * Hashes a file.  Advises the kernel that the data is read only once (POSIX_FADV_NOREUSE).  Returns
 * as tool_digest_hash_blocks does.
 */
static int
tool_digest_hash_file(struct digest_work *dw, int fd, const struct stat *st,
    uint8_t hash[static DIGEST_HASH])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned char *block = malloc(BLOCK);
	int error = -ENOMEM;

	pthread_once(&sha256_once, tool_digest_fetch_sha256);
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	posix_fadvise(fd, 0, 0, POSIX_FADV_NOREUSE);
	if (ctx != NULL && block != NULL &&
	    EVP_DigestInit_ex(ctx, sha256, NULL) == 1)
		error =
		    tool_digest_hash_blocks(dw, fd, st->st_size, ctx, block);
	if (error == 0 && EVP_DigestFinal_ex(ctx, hash, NULL) != 1)
		error = -ENOMEM;
	if (error == 0 && !tool_unchanged(fd, st))
		error = -ESTALE;
	free(block);
	EVP_MD_CTX_free(ctx);
	return error;
}

/* ---------------------------------------------------------------------- a file */

/*
 * Returns true if the device is full.  On ext4, -ENOSPC may also mean that a file has no space for
 * another attribute.
 */
static bool
tool_digest_is_full(const struct walk_file *wf, int error)
{
	struct statvfs sv;

	if (error != -ENOSPC)
		return error == -EDQUOT;
	return fstatvfs(wf->wf_dir->wd_fd, &sv) == 0 &&
	       (uint64_t)sv.f_bavail * sv.f_frsize < FULL;
}

static void
tool_digest_say(struct tool *to, const struct walk_file *wf, int error)
{
	if (error == -ECANCELED || (tool_stopped() && error != -ESTALE))
		return;
	if (error == -ESTALE) {
		tool_fail(to, wf->wf_dir, wf->wf_name,
		    "the file changed while it was read; run the command "
		    "again");
	} else if (error == -EOPNOTSUPP) {
		tool_give_up();
		tool_fail(to, wf->wf_dir, wf->wf_name,
		    "digests need user extended attributes, which this file "
		    "system does not support");
	} else if (error == -EROFS) {
		tool_give_up();
		tool_fail(to, wf->wf_dir, wf->wf_name,
		    "the file system is mounted read-only");
	} else if (error == -EACCES || error == -EPERM) {
		tool_fail(to, wf->wf_dir, wf->wf_name,
		    "cannot write the attribute: %s; run the command as a "
		    "user that may write the file",
		    strerror(-error));
	} else if (tool_digest_is_full(wf, error)) {
		tool_give_up();
		tool_fail(to, wf->wf_dir, wf->wf_name,
		    "cannot store the digest: %s; the remaining files are "
		    "skipped",
		    strerror(-error));
	} else {
		tool_fail(to, wf->wf_dir, wf->wf_name,
		    "cannot compute or store the digest: %s", strerror(-error));
	}
}

/*
 * Reads the stored digest.  Returns 0, -ENOENT if the file has no digest that matches its size and
 * modification time, or another -errno.
 */
static int
tool_digest_read(int fd, const struct stat *st, struct digest *dg)
{
	char text[DIGEST_TEXT];
	long n = os_attribute(fd, DIGEST_ATTRIBUTE, text, sizeof(text));

	if (n < 0 && n != -ERANGE)
		return (int)n;
	if (n < 0 || !digest_parse((struct str){text, (size_t)n}, dg) ||
	    !digest_is_of(dg, st->st_size, &st->st_mtim))
		return -ENOENT;
	return 0;
}

/*
 * Checks for write permission, because a digest that cannot be stored need not be computed.
 * Returns 0 or -errno.
 */
static int
tool_digest_may_write(const struct walk_file *wf)
{
	return faccessat(wf->wf_dir->wd_fd, wf->wf_name, W_OK, AT_EACCESS) == -1
		   ? -errno
		   : 0;
}

static int
tool_digest_write(
    struct digest_work *dw, int fd, const struct stat *st, struct digest *dg)
{
	char text[DIGEST_TEXT];
	size_t len;
	int error;

	if (!tool_settle(st))
		return -ECANCELED;
	error = tool_digest_hash_file(dw, fd, st, dg->dg_hash);
	if (error != 0)
		return error;
	dg->dg_size = st->st_size;
	dg->dg_mtime = st->st_mtim;
	len = digest_format(dg, text);
	return attribute_write(fd, DIGEST_ATTRIBUTE, text, len);
}

static void
tool_digest_check(struct tool *to, const struct walk_file *wf, int fd,
    const struct stat *st, const struct digest *dg)
{
	uint8_t hash[DIGEST_HASH];
	int error = tool_digest_hash_file(tool_digest_own(to), fd, st, hash);

	if (error != 0) {
		tool_digest_say(to, wf, error);
	} else if (memcmp(hash, dg->dg_hash, sizeof(hash)) == 0) {
		tool_digest_own(to)->dw_done++;
	} else {
		tool_digest_own(to)->dw_differ++;
		tool_found(to, wf,
		    "the content does not match the digest; "
		    "restore the file, or replace the digest "
		    "with pagewise digest -f");
	}
}

static void
tool_digest_file(
    struct tool *to, const struct walk_file *wf, int fd, const struct stat *st)
{
	struct digest_work *dw = tool_digest_own(to);
	struct digest dg;
	int error = tool_digest_read(fd, st, &dg);

	if (error == 0 && dw->dw_check) {
		tool_digest_check(to, wf, fd, st, &dg);
	} else if (error == -ENOENT && dw->dw_check) {
		dw->dw_without++;
	} else if (error == 0 && !to->to_force) {
		dw->dw_current++;
	} else {
		if (error == 0 || error == -ENOENT)
			error = tool_digest_may_write(wf);
		if (error == 0)
			error = tool_digest_write(dw, fd, st, &dg);
		if (error == 0)
			dw->dw_done++;
		else
			tool_digest_say(to, wf, error);
	}
}

static void
tool_digest_end(const struct tool *to)
{
	const struct digest_work *dw = tool_digest_own(to);
	char bytes[16];

	size_text(dw->dw_read, bytes, sizeof(bytes));
	if (dw->dw_check)
		printf("%llu files: %llu verified, %llu differ, "
		       "%llu without a digest; %llu errors; %s read\n",
		    (unsigned long long)to->to_files,
		    (unsigned long long)dw->dw_done,
		    (unsigned long long)dw->dw_differ,
		    (unsigned long long)dw->dw_without,
		    (unsigned long long)(to->to_failed - dw->dw_differ), bytes);
	else
		printf("%llu files: %llu digests written, %llu current; "
		       "%llu errors; %s read\n",
		    (unsigned long long)to->to_files,
		    (unsigned long long)dw->dw_done,
		    (unsigned long long)dw->dw_current,
		    (unsigned long long)to->to_failed, bytes);
}

const struct tool_command digest_command = {
    .tc_name = "digest",
    .tc_wants = tool_digest_wants,
    .tc_file = tool_digest_file,
    .tc_end = tool_digest_end,
};
