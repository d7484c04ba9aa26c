/*
 * report: what the three ladders have in common.  A ladder is a list of rungs,
 * a rung is measured once in every round, and the figure of the text that the
 * ladder reproduces stands beside ours.
 */
#ifndef BENCH_LADDERS_REPORT_H
#define BENCH_LADDERS_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#define LADDER_ROUNDS	101
#define LADDER_MEASURES 8
#define LADDER_OPTIONS	6

struct measure {
	int ms_count;
	double ms_values[LADDER_ROUNDS];
};

struct rung {
	const char *ru_name;
	/* The source's figures; 0 where it has none. */
	double ru_sources[LADDER_MEASURES];
	char ru_why_not[160]; /* empty if it could run */
	struct measure ru_measures[LADDER_MEASURES];
};

/* A figure beside the rungs, in the unit of the first measure. */
struct reference {
	const char *rf_name;
	double rf_source; /* 0 where the source has none */
	struct measure rf_measure;
};

struct ladder {
	const char *ld_name;
	const char *ld_source; /* where the source measured */
	bool ld_less_is_faster;
	/* The first is the one that ratios are made of. */
	const char *ld_measures[LADDER_MEASURES];
	const char *ld_units[LADDER_MEASURES];
	const char *ld_options[LADDER_OPTIONS];
	double ld_values[LADDER_OPTIONS];
	char ld_huge[160]; /* huge pages: available, or why not */
	char ld_notes[800];
	struct rung *ld_rungs;
	int ld_nrungs;
	struct reference *ld_references;
	int ld_nreferences;
};

double ladder_now(void); /* seconds */
void ladder_note(struct measure *, double);
void ladder_add(struct rung *, int measure, double);
double ladder_median(const struct measure *); /* 0 if there is none */
void ladder_option(struct ladder *, const char *, double);

/* On standard output: one JSON object, or a Markdown table. */
void ladder_print(const struct ladder *, bool json);

/* A number of at least min with k, m or g behind it; exits if it is none. */
size_t ladder_number(const char *option, const char *text, size_t min);
int ladder_rounds(const char *text);

/* Self tests speak the Test Anything Protocol; ladder_tested is main's result. */
void ladder_test(bool ok, const char *name);
void ladder_skip(const char *name, const char *why);
int ladder_tested(void);

#endif
