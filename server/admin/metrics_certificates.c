/*
 * metrics_certificates: when certificates expire, as cert-manager and others name it.
 */
#include <stdio.h>

#include "server/admin/metrics_priv.h"

#define LABEL 1024 /* bytes of a label; the rest of a longer path is left out */

/* {file="..."}, as the format wants it: a path may have any byte in it. */
static void
label(const char *file, char *text, size_t size)
{
	char *end = text + size - sizeof("\\x\"}");

	text += snprintf(text, size, "{file=\"");
	for (; *file != '\0' && text < end; file++) {
		if (*file == '"' || *file == '\\' || *file == '\n')
			*text++ = '\\';
		*text++ = *file == '\n' ? 'n' : *file;
	}
	snprintf(text, sizeof("\"}"), "\"}");
}

void
metrics_certificates(const struct metrics *mt, struct evbuffer *out)
{
	static const char name[] =
	    "pagewise_certificate_expiration_timestamp_seconds";
	const struct conf *conf = mt->mt_conf;
	char text[LABEL];

	if (conf->conf_nidentities == 0)
		return;
	text_family(out, name, "gauge",
	    "When the certificate in this file, or the first of its chain, "
	    "expires; Unix time.");
	for (size_t i = 0; i < conf->conf_nidentities; i++) {
		label(conf->conf_identities[i]->id_file, text, sizeof(text));
		text_value(out, name, text,
		    (uint64_t)conf->conf_identities[i]->id_expires);
	}
}
