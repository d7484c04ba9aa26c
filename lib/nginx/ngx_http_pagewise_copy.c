
/*
 * Copies of small files in memory, from which the worker sends responses.  One
 * writev() of a copy costs less CPU time than a header and a sendfile() of
 * these bytes.
 *
 * A copy has the bytes of the version that its file (struct pw_file) describes.
 * The library notices at each open whether a file has changed, and then makes
 * another struct pw_file, which has no copy.  The module keeps a copy only if
 * the ctime of the file is so old that each later write changes the ctime.  A
 * store through a mapping may not change the ctime, so the module makes each
 * copy again after a second, unless the kernel has evicted a page of the file.
 */


#include "ngx_http_pagewise.h"


#define NGX_HTTP_PAGEWISE_COPY_FILE     65536     /* largest file */
#define NGX_HTTP_PAGEWISE_COPY_ONCE     16384     /* largest file whose copy is
                                                     made for one request */
#define NGX_HTTP_PAGEWISE_COPY_ALL      16777216  /* bytes of all copies */
#define NGX_HTTP_PAGEWISE_COPY_AGE      1000      /* ms */
#define NGX_HTTP_PAGEWISE_COPY_MISSING  50        /* ms until the next try if
                                                     bytes were missing, and
                                                     then twice as many */
#define NGX_HTTP_PAGEWISE_COPY_SETTLED  2         /* least age of a ctime, s */


/* data of a file, in fil_user */

typedef struct {
    ngx_http_pagewise_copy_t  *copy;        /* NULL if none is kept */
    ngx_msec_t                 until;       /* end of the copy's use, or time
                                               of the next try */
    ngx_msec_t                 missing;     /* ms from this try to the next one
                                               if bytes are missing */
} ngx_http_pagewise_kept_t;


static size_t  ngx_http_pagewise_copy_bytes;


static void
ngx_http_pagewise_copy_forget(ngx_http_pagewise_kept_t *kept)
{
    if (kept->copy == NULL) {
        return;
    }

    ngx_http_pagewise_copy_unref(kept->copy);
    kept->copy = NULL;
}


static void
ngx_http_pagewise_copy_free_kept(void *data)
{
    ngx_http_pagewise_copy_forget(data);
    ngx_free(data);
}


static ngx_http_pagewise_kept_t *
ngx_http_pagewise_copy_kept(struct pw_file *file)
{
    ngx_http_pagewise_kept_t  *kept;

    kept = file->fil_user;

    if (kept != NULL) {
        return kept;
    }

    kept = ngx_calloc(sizeof(ngx_http_pagewise_kept_t), ngx_cycle->log);
    if (kept == NULL) {
        return NULL;
    }

    kept->until = ngx_current_msec;
    kept->missing = NGX_HTTP_PAGEWISE_COPY_MISSING;

    file->fil_user = kept;
    file->fil_user_free = ngx_http_pagewise_copy_free_kept;

    return kept;
}


/* sets rc to 0, or to -EAGAIN if not all bytes are resident, or to an error */

static ngx_http_pagewise_copy_t *
ngx_http_pagewise_copy_make(struct pw_file *file, int *rc)
{
    ngx_http_pagewise_copy_t  *copy;

    *rc = -ENOMEM;

    if ((size_t) file->fil_size
        > NGX_HTTP_PAGEWISE_COPY_ALL - ngx_http_pagewise_copy_bytes)
    {
        return NULL;
    }

    copy = ngx_alloc(sizeof(ngx_http_pagewise_copy_t) + file->fil_size,
                     ngx_cycle->log);
    if (copy == NULL) {
        return NULL;
    }

    *rc = pw_file_copy(file, 0, copy->data, file->fil_size);

    if (*rc == 0) {
        copy->refs = 1;
        copy->size = file->fil_size;
        ngx_http_pagewise_copy_bytes += copy->size;
        return copy;
    }

    if (*rc == -ESTALE) {
        file->fil_stale = true;
    }

    ngx_free(copy);

    return NULL;
}


/* returns 1 if each later write will change the ctime */

static ngx_uint_t
ngx_http_pagewise_copy_settled(struct pw_file *file)
{
    return file->fil_ctime.tv_sec < ngx_time() - NGX_HTTP_PAGEWISE_COPY_SETTLED;
}


/*
 * Keeps the copy in place of an earlier one, or the earlier one if both have
 * the same bytes, so that slow clients do not keep several copies.  Returns the
 * kept copy.
 */

static ngx_http_pagewise_copy_t *
ngx_http_pagewise_copy_keep(ngx_http_pagewise_kept_t *kept,
    ngx_http_pagewise_copy_t *copy)
{
    kept->until = ngx_current_msec + NGX_HTTP_PAGEWISE_COPY_AGE;

    if (kept->copy != NULL
        && ngx_memcmp(kept->copy->data, copy->data, copy->size) == 0)
    {
        ngx_http_pagewise_copy_unref(copy);
        return kept->copy;
    }

    ngx_http_pagewise_copy_forget(kept);
    kept->copy = copy;

    return copy;
}


ngx_http_pagewise_copy_t *
ngx_http_pagewise_copy_get(struct pw_file *file)
{
    int                        rc;
    ngx_uint_t                 keep;
    ngx_http_pagewise_copy_t  *copy;
    ngx_http_pagewise_kept_t  *kept;

    if (file->fil_size > NGX_HTTP_PAGEWISE_COPY_FILE) {
        return NULL;
    }

    kept = ngx_http_pagewise_copy_kept(file);
    if (kept == NULL) {
        return NULL;
    }

    if ((ngx_msec_int_t) (kept->until - ngx_current_msec) > 0) {
        copy = kept->copy;

    } else {
        keep = kept->copy != NULL || ngx_http_pagewise_copy_settled(file);

        if (!keep && file->fil_size > NGX_HTTP_PAGEWISE_COPY_ONCE) {
            return NULL;
        }

        copy = ngx_http_pagewise_copy_make(file, &rc);

        if (rc == -EAGAIN) {

            /* the earlier copy, if any, so that the request waits for no disk */

            copy = kept->copy;
            kept->until = ngx_current_msec
                          + (copy != NULL ? NGX_HTTP_PAGEWISE_COPY_AGE
                                          : kept->missing);
            kept->missing = ngx_min(2 * kept->missing,
                                    NGX_HTTP_PAGEWISE_COPY_AGE);

        } else if (copy == NULL) {
            ngx_http_pagewise_copy_forget(kept);
            kept->until = ngx_current_msec + NGX_HTTP_PAGEWISE_COPY_AGE;

        } else if (keep) {
            copy = ngx_http_pagewise_copy_keep(kept, copy);

        } else {
            return copy;
        }
    }

    if (copy != NULL) {
        copy->refs++;
    }

    return copy;
}


void
ngx_http_pagewise_copy_unref(ngx_http_pagewise_copy_t *copy)
{
    if (--copy->refs == 0) {
        ngx_http_pagewise_copy_bytes -= copy->size;
        ngx_free(copy);
    }
}
