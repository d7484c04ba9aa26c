/*
 * syntax: see syntax.h.
 */
#include "server/conf/syntax.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/conf/foreign.h"

#define LEVELS	3      /* top level, site, location */
#define SYMBOLS "*+()" /* characters allowed only in quotes */

struct token {
	char *tk_at;
	size_t tk_len;
	int tk_line;
	char tk_kind; /* 'w' (word or string), '\0' (end), or the symbol */
};

struct scan {
	struct conf *sc_conf;
	const char *sc_path;
	struct syntax *sc_syntax;
	struct token sc_now;
	char *sc_end;	 /* end of the previous token */
	int sc_end_line; /* line where the previous token ends */
	int sc_line;	 /* line where sc_now ends */
	bool sc_logged;	 /* true if a fault of this statement was logged */
	bool sc_broken;	 /* true if the rest of the statement must be skipped */
	int sc_error;	 /* 0 or -ENOMEM */
	unsigned sc_depth;
	struct section **sc_last;	 /* link for the next section */
	struct section *sc_open[LEVELS]; /* open sections by depth */
	struct token sc_titles[LEVELS];	 /* titles by depth, with quotes */
	int sc_lines[LEVELS][KEY_MAX];	 /* line where each key was set, or 0 */
};

/* ------------------------------------------------------------------- tokens */

static void
syntax_next(struct scan *sc)
{
	struct token *tk = &sc->sc_now;
	char *p = tk->tk_at + tk->tk_len;
	const char *what;

	sc->sc_end = p;
	sc->sc_end_line = sc->sc_line;
	for (; *p != '\0' && strchr(" \t\r\n", *p) != NULL; p++)
		sc->sc_line += *p == '\n';
	tk->tk_at = p;
	tk->tk_line = sc->sc_line;
	tk->tk_len = 0;
	tk->tk_kind = *p;
	if (*p == '\0')
		return;
	if (p[0] == '+' && p[1] == '=')
		tk->tk_len = 2;
	else
		tk->tk_len =
		    (size_t)(conf_text_token(p, &sc->sc_line, &what) - p);
	if (strchr("={}," SYMBOLS, *p) == NULL)
		tk->tk_kind = 'w';
}

static bool
syntax_is_symbol(char c)
{
	return c != '\0' && strchr(SYMBOLS, c) != NULL;
}

static bool
syntax_is_string(const struct token *tk)
{
	return tk->tk_at[0] == '"' || tk->tk_at[0] == '\'';
}

/* Returns true for a key: a word that '=' follows. */
static bool
syntax_is_key(const struct token *tk)
{
	const char *p = tk->tk_at + tk->tk_len;

	return tk->tk_kind == 'w' && !syntax_is_string(tk) &&
	       p[strspn(p, " \t\r\n")] == '=';
}

static void syntax_fault(struct scan *sc, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void
syntax_fault(struct scan *sc, int line, const char *fmt, ...)
{
	va_list ap;

	if (!sc->sc_logged) {
		va_start(ap, fmt);
		conf_vsay(sc->sc_conf, sc->sc_path, line, fmt, ap);
		va_end(ap);
	}
	sc->sc_logged = sc->sc_broken = true;
}

static void
syntax_unexpected(struct scan *sc)
{
	const struct token *tk = &sc->sc_now;

	syntax_fault(sc, tk->tk_line,
	    "%.*s: not expected here; a comma before it or quotes around the "
	    "value may be missing",
	    (int)tk->tk_len, tk->tk_at);
}

static void *
syntax_keep(struct scan *sc, size_t size)
{
	void *block = conf_keep_in(&sc->sc_syntax->sy_memory, size);

	if (block == NULL)
		sc->sc_error = -ENOMEM;
	return block;
}

/*
 * Adds a value to the open section, after its token was read.  If `text` is NULL, marks the start
 * of a key's values.
 */
static void
syntax_set(struct scan *sc, const struct key *key, char *text)
{
	struct section *sec = sc->sc_open[sc->sc_depth];
	struct value *value = syntax_keep(sc, sizeof(*value));

	if (value == NULL)
		return;
	*value = (struct value){NULL, key, text, sc->sc_end_line};
	*sec->sec_last = value;
	sec->sec_last = &value->val_next;
}

/* ---------------------------------------------------- skipping faulty statements */

static void
syntax_skip_block(struct scan *sc)
{
	unsigned depth = 0;

	do {
		depth += sc->sc_now.tk_kind == '{';
		depth -= sc->sc_now.tk_kind == '}';
		syntax_next(sc);
	} while (depth > 0 && sc->sc_now.tk_kind != '\0');
}

/* Skips to the end of the line or section, including blocks that begin in the line. */
static void
syntax_skip_line(struct scan *sc)
{
	int line = sc->sc_end_line;

	while (sc->sc_now.tk_line == line && sc->sc_now.tk_kind != '\0' &&
	       sc->sc_now.tk_kind != '}') {
		if (sc->sc_now.tk_kind == '{')
			syntax_skip_block(sc);
		else
			syntax_next(sc);
		line = sc->sc_end_line;
	}
}

/* Skips the rest of an unknown or broken statement, such as a block of another program's syntax. */
static void
syntax_skip_statement(struct scan *sc)
{
	if (sc->sc_now.tk_kind != '{' && sc->sc_now.tk_kind != '}')
		syntax_skip_line(sc);
	if (sc->sc_now.tk_kind == '{')
		syntax_skip_block(sc);
}

/* Skips to the brace that closes a list. */
static void
syntax_skip_list(struct scan *sc)
{
	while (sc->sc_now.tk_kind != '\0' && sc->sc_now.tk_kind != '}') {
		if (sc->sc_now.tk_kind == '{')
			syntax_skip_block(sc);
		else
			syntax_next(sc);
	}
	if (sc->sc_now.tk_kind == '}')
		syntax_next(sc);
}

/* ------------------------------------------------------------------- values */

static void
syntax_wants_quotes(struct scan *sc, const struct token *name, char c)
{
	const char text[] = {c, '\0'};

	syntax_fault(sc, name->tk_line,
	    "%.*s: put the value in quotes: it contains a %s",
	    (int)name->tk_len, name->tk_at, c == ' ' ? "space" : text);
}

/* Reports text that follows a value or title without a space. */
static void
syntax_check_end(struct scan *sc, const struct token *name, bool title)
{
	const struct token *next = &sc->sc_now;

	if (next->tk_at != sc->sc_end || next->tk_at[0] == ';')
		return;
	if (next->tk_kind == 'w' || syntax_is_symbol(next->tk_kind) ||
	    (next->tk_kind == '{' && !title))
		syntax_wants_quotes(sc, name, next->tk_at[0]);
}

/* Reads a value or title.  Sets sc_broken after a fault; the result may then be NULL. */
static char *
syntax_text(struct scan *sc, const struct token *name, bool title)
{
	struct token tk = sc->sc_now;
	struct conf_why why;
	char *text = NULL;
	int line = tk.tk_line;

	syntax_next(sc);
	if (!syntax_is_string(&tk) && tk.tk_at[tk.tk_len - 1] == ';')
		syntax_fault(sc, line,
		    "%.*s: remove the ';', or put the value in quotes",
		    (int)tk.tk_len, tk.tk_at);
	else if ((text = conf_unescape(&sc->sc_syntax->sy_memory,
		      (struct str){tk.tk_at, tk.tk_len}, &line, &why)) == NULL)
		syntax_fault(sc, line, "%s", why.why_text);
	syntax_check_end(sc, name, title);
	return text;
}

static void
syntax_no_end(struct scan *sc, const struct token *name)
{
	syntax_fault(sc, name->tk_line, "%.*s: the list is not closed: add '}'",
	    (int)name->tk_len, name->tk_at);
}

/* Reports an unexpected token in a list.  Skips the rest of the list, unless it is not closed. */
static void
syntax_bad_list(struct scan *sc, const struct token *name)
{
	char kind = sc->sc_now.tk_kind;

	if (kind == '\0' || syntax_is_key(&sc->sc_now)) {
		syntax_no_end(sc, name);
		return;
	}
	if (syntax_is_symbol(kind))
		syntax_wants_quotes(sc, name, kind);
	else
		syntax_unexpected(sc);
	syntax_skip_list(sc);
}

/* Reads a list after its opening brace. */
static void
syntax_list(struct scan *sc, const struct token *name, const struct key *key)
{
	struct conf_why why;
	unsigned n;

	for (n = 0; sc->sc_now.tk_kind != '}'; n++) {
		if (sc->sc_now.tk_kind != 'w' || syntax_is_key(&sc->sc_now)) {
			syntax_bad_list(sc, name);
			return;
		}
		syntax_set(sc, key, syntax_text(sc, name, false));
		if (sc->sc_broken) {
			syntax_skip_list(sc);
			return;
		}
		if (sc->sc_now.tk_kind == ',') {
			syntax_next(sc);
		} else if (sc->sc_now.tk_kind != '}') {
			syntax_bad_list(sc, name);
			return;
		}
	}
	syntax_next(sc);
	if (n == 0 && key != NULL && conf_key_empty(key->key_name, &why) != 0)
		syntax_fault(
		    sc, name->tk_line, "%s: %s", key->key_name, why.why_text);
}

/*
 * Reads a value or list after the '='.  The parameter key is NULL if the name is no key of this
 * section.
 */
static void
syntax_value(struct scan *sc, const struct token *name, const struct key *key)
{
	char kind = sc->sc_now.tk_kind;

	if (kind == '{' && (key == NULL || key->key_clear != NULL)) {
		syntax_next(sc);
		syntax_list(sc, name, key);
		return;
	}
	if (kind == '{') {
		syntax_unexpected(sc);
		syntax_skip_block(sc);
		return;
	}
	if (kind == 'w' && !syntax_is_key(&sc->sc_now)) {
		syntax_set(sc, key, syntax_text(sc, name, false));
		return;
	}
	if (syntax_is_symbol(kind))
		syntax_wants_quotes(sc, name, kind);
	else
		syntax_fault(sc, name->tk_line, "%.*s: the value is missing",
		    (int)name->tk_len, name->tk_at);
}

/*
 * Refuses a word that follows a value in the same line and begins no statement, such as the second
 * word of `1 day'.
 */
static void
syntax_check_words(struct scan *sc, const struct token *name)
{
	const struct token *tk = &sc->sc_now;
	char word[128];

	if (sc->sc_broken || tk->tk_kind != 'w' || syntax_is_string(tk) ||
	    tk->tk_line != sc->sc_end_line || syntax_is_key(tk) ||
	    tk->tk_at[tk->tk_len - 1] == ';')
		return;
	snprintf(word, sizeof(word), "%.*s", (int)tk->tk_len, tk->tk_at);
	if (conf_key(word) != NULL || strcmp(word, "site") == 0 ||
	    strcmp(word, "location") == 0)
		return;
	syntax_wants_quotes(sc, name, ' ');
}

/* --------------------------------------------------------------- statements */

static void
syntax_twice(struct scan *sc, const struct token *name, const struct key *key)
{
	int *line = &sc->sc_lines[sc->sc_depth][key - conf_keys];

	if (*line == 0)
		*line = name->tk_line;
	else if (key->key_clear != NULL)
		syntax_fault(sc, name->tk_line,
		    "%s: already set in line %d: write one list, "
		    "%s = {..., ...}",
		    key->key_name, *line, key->key_name);
	else
		syntax_fault(sc, name->tk_line,
		    "%s: already set in line %d: remove one of the two",
		    key->key_name, *line);
}

/*
 * Reads a setting after the key's name.  The parameter key is NULL if the name is no key of this
 * section; that fault is already logged.
 */
static void
syntax_setting(struct scan *sc, const struct token *name, const struct key *key)
{
	const struct token *tk = &sc->sc_now;

	if (tk->tk_kind == '+' && tk->tk_len == 2) {
		syntax_fault(sc, tk->tk_line,
		    "\"+=\" is not supported: write the whole list with '='");
	} else if (tk->tk_kind != '=') {
		syntax_fault(sc, name->tk_line,
		    "%.*s: '=' is missing: write %.*s = %s", (int)name->tk_len,
		    name->tk_at, (int)name->tk_len, name->tk_at,
		    key == NULL ? "" : key->key_values);
	} else {
		syntax_next(sc);
		syntax_set(sc, key, NULL);
		syntax_value(sc, name, key);
		syntax_check_words(sc, name);
	}
	if (sc->sc_broken)
		syntax_skip_line(sc);
}

/*
 * Reports a name that is no key or section in this place.  The message suggests the right section
 * for a key of another section, the equivalent for a directive of another server, else the most
 * similar key or section.
 */
static void
syntax_unknown(struct scan *sc, const struct token *tk, const char *name)
{
	const char *place =
	    conf_key_place(name, sc->sc_open[sc->sc_depth]->sec_where);
	const char *like = conf_key_like(name);
	const struct foreign *foreign = foreign_find(name);

	if (name[0] == '\0')
		name = "\"\"";
	if (place != NULL)
		syntax_fault(sc, tk->tk_line, "%s: %s", name, place);
	else if (foreign != NULL)
		syntax_fault(sc, tk->tk_line,
		    "%s: unknown key; the equivalent of this %s directive is "
		    "%s",
		    name, foreign->fo_program, foreign->fo_ours);
	else if (like != NULL)
		syntax_fault(sc, tk->tk_line,
		    "%s: unknown key; did you mean %s?", name, like);
	else
		syntax_fault(sc, tk->tk_line, "%s: unknown key", name);
}

static void
syntax_add(struct scan *sc, unsigned where, int line, char *title)
{
	struct section *sec = syntax_keep(sc, sizeof(*sec));

	if (sec == NULL)
		return;
	*sec = (struct section){.sec_where = where,
	    .sec_line = line,
	    .sec_title = title,
	    .sec_last = &sec->sec_values};
	*sc->sc_last = sec;
	sc->sc_last = &sec->sec_next;
	sc->sc_open[sc->sc_depth] = sec;
	memset(sc->sc_lines[sc->sc_depth], 0, sizeof(sc->sc_lines[0]));
}

static const char *
syntax_name(unsigned where)
{
	return where == KEY_SITE ? "site" : "location";
}

/* Reads the title of a section and opens it.  Call after the word site or location. */
static void
syntax_open(struct scan *sc, const struct token *name, unsigned where)
{
	struct token tk = sc->sc_now;
	char *title = NULL;

	if (tk.tk_kind != 'w')
		syntax_fault(sc, name->tk_line,
		    "%s: the name is missing or needs quotes: write "
		    "%s \"NAME\" {",
		    syntax_name(where), syntax_name(where));
	else
		title = syntax_text(sc, name, true);
	if (!sc->sc_broken && sc->sc_now.tk_kind != '{')
		syntax_fault(sc, name->tk_line,
		    "%s: '{' is missing: write %s \"NAME\" {",
		    syntax_name(where), syntax_name(where));
	if (sc->sc_broken) {
		syntax_skip_statement(sc);
		return;
	}
	sc->sc_depth++;
	sc->sc_titles[sc->sc_depth] = tk;
	syntax_add(sc, where, name->tk_line, title);
	syntax_next(sc);
}

static void
syntax_close(struct scan *sc)
{
	if (sc->sc_depth == 0)
		syntax_fault(sc, sc->sc_now.tk_line,
		    "unexpected '}': no block is open; remove it");
	else
		sc->sc_depth--;
	syntax_next(sc);
}

/* Reads a statement that begins with this word. */
static void
syntax_named(struct scan *sc, const struct token *tk)
{
	unsigned where = sc->sc_open[sc->sc_depth]->sec_where;
	size_t quote = syntax_is_string(tk);
	char name[128];
	const struct key *key;

	snprintf(name, sizeof(name), "%.*s", (int)(tk->tk_len - 2 * quote),
	    tk->tk_at + quote);
	key = conf_key(name);
	if (where == KEY_TOP && strcmp(name, "site") == 0) {
		syntax_open(sc, tk, KEY_SITE);
		return;
	}
	if (where == KEY_SITE && strcmp(name, "location") == 0) {
		syntax_open(sc, tk, KEY_LOCATION);
		return;
	}
	if (key != NULL && (key->key_where & where) != 0) {
		syntax_twice(sc, tk, key);
	} else {
		key = NULL;
		syntax_unknown(sc, tk, name);
	}
	sc->sc_broken = false;
	syntax_setting(sc, tk, key);
	if (key == NULL && sc->sc_now.tk_kind == '{')
		syntax_skip_block(sc);
}

static void
syntax_statement(struct scan *sc)
{
	struct token tk = sc->sc_now;
	struct section *sec = sc->sc_open[sc->sc_depth];
	struct value **last = sec->sec_last;

	sc->sc_logged = sc->sc_broken = false;
	if (tk.tk_kind == '}') {
		syntax_close(sc);
	} else if (tk.tk_kind != 'w') {
		syntax_unexpected(sc);
		if (tk.tk_kind != '{')
			syntax_next(sc);
		syntax_skip_statement(sc);
	} else if (!syntax_is_string(&tk) && tk.tk_at[tk.tk_len - 1] == ';') {
		syntax_text(sc, &tk, false);
	} else {
		syntax_next(sc);
		syntax_named(sc, &tk);
	}
	if (sc->sc_logged) {
		sec->sec_last = last;
		*last = NULL;
	}
}

/* Reports the outermost section that is not closed, as inner sections may be complete. */
static void
syntax_end(struct scan *sc)
{
	const struct token *title = &sc->sc_titles[1];

	sc->sc_logged = false;
	if (sc->sc_depth > 0)
		syntax_fault(sc, sc->sc_open[1]->sec_line,
		    "%s %.*s: the block is not closed: add '}'",
		    syntax_name(sc->sc_open[1]->sec_where), (int)title->tk_len,
		    title->tk_at);
}

int
syntax_read(struct conf *conf, const char *path, char *text, struct syntax *sy)
{
	struct scan sc = {.sc_conf = conf,
	    .sc_path = path,
	    .sc_syntax = sy,
	    .sc_last = &sy->sy_sections,
	    .sc_line = 1,
	    .sc_now.tk_at = text};

	syntax_add(&sc, KEY_TOP, 1, NULL);
	syntax_next(&sc);
	while (sc.sc_error == 0 && sc.sc_now.tk_kind != '\0')
		syntax_statement(&sc);
	if (sc.sc_error == 0)
		syntax_end(&sc);
	return sc.sc_error;
}
