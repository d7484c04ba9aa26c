/*
 * secret_file: see secret_file.h.
 */
#include <sys/stat.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/util/secret_file.h"
#include "server/util/text_file.h"

#define MOST ((off_t)16 << 20) /* maximum size of a file, bytes */

/* Returns NULL if the file may be used, else the reason. */
static const char *
secret_file_unfit(const struct stat *st, bool closed)
{
	if (st->st_size > MOST)
		return "is larger than 16 MiB";
	if (closed && (st->st_mode & (S_IWGRP | S_IRWXO)) != 0)
		return "other users can read or write it: chmod 600 it";
	if ((st->st_mode & S_IWOTH) != 0)
		return "other users can write it: chmod o-w it";
	return NULL;
}

/* Returns NULL if the file was read, else the reason. */
static const char *
secret_file_read_all(struct secret_file *sf, FILE *fp, size_t len)
{
	sf->sf_text = sf->sf_rest = calloc(1, len + 1);
	if (sf->sf_text == NULL)
		return strerror(ENOMEM);
	sf->sf_len = len;
	/* Without a buffer stdio keeps no copy of the text. */
	if (setvbuf(fp, NULL, _IONBF, 0) != 0 ||
	    fread(sf->sf_text, 1, len, fp) != len)
		return ferror(fp) ? strerror(errno)
				  : "became shorter while it was read: try "
				    "again";
	return NULL;
}

bool
secret_file_read_bytes(struct secret_file *sf, const char *path, bool closed,
    char *why, size_t size)
{
	FILE *fp = text_file_open(path);
	const char *cause;
	struct stat st = {0};

	*sf = (struct secret_file){0};
	if (fp == NULL)
		cause = text_file_cause(errno);
	else if (fstat(fileno(fp), &st) == -1)
		cause = strerror(errno);
	else
		cause = secret_file_unfit(&st, closed);
	if (cause == NULL)
		cause = secret_file_read_all(
		    sf, fp, (size_t)(st.st_size - ftello(fp)));
	if (cause != NULL)
		snprintf(why, size, "%s: %s", path, cause);
	if (fp != NULL)
		fclose(fp);
	if (cause != NULL)
		secret_file_forget(sf);
	return cause == NULL;
}

bool
secret_file_read(struct secret_file *sf, const char *path, bool closed,
    char *why, size_t size)
{
	if (!secret_file_read_bytes(sf, path, closed, why, size))
		return false;
	if (strlen(sf->sf_text) == sf->sf_len)
		return true;
	snprintf(why, size,
	    "%s: contains a NUL byte: save the file as ASCII "
	    "or UTF-8",
	    path);
	secret_file_forget(sf);
	return false;
}

void
secret_file_forget(struct secret_file *sf)
{
	if (sf->sf_text == NULL)
		return;
	explicit_bzero(sf->sf_text, sf->sf_len);
	free(sf->sf_text);
	sf->sf_text = NULL;
}

char *
secret_file_line(struct secret_file *sf)
{
	char *line = sf->sf_rest, *end;

	if (line == NULL || *line == '\0')
		return NULL;
	end = strchr(line, '\n');
	sf->sf_rest = end != NULL ? end + 1 : NULL;
	if (end == NULL)
		end = line + strlen(line);
	*end = '\0';
	if (end > line && end[-1] == '\r')
		end[-1] = '\0';
	return line;
}
