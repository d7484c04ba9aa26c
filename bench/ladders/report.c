/*
 * report: statistics, environment and output of the ladders.
 */
#include <sys/utsname.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

static int tests, failures;

double
ladder_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void
ladder_note(struct measure *ms, double value)
{
	if (ms->ms_count < LADDER_ROUNDS)
		ms->ms_values[ms->ms_count++] = value;
}

void
ladder_add(struct rung *ru, int measure, double value)
{
	ladder_note(&ru->ru_measures[measure], value);
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
ladder_median(const struct measure *ms)
{
	double sorted[LADDER_ROUNDS];
	int n = ms->ms_count;

	if (n == 0)
		return 0;
	memcpy(sorted, ms->ms_values, (size_t)n * sizeof(*sorted));
	qsort(sorted, (size_t)n, sizeof(*sorted), by_value);
	return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

static void
extremes(const struct measure *ms, double *min, double *max)
{
	int i;

	*min = *max = ms->ms_values[0];
	for (i = 1; i < ms->ms_count; i++) {
		if (ms->ms_values[i] < *min)
			*min = ms->ms_values[i];
		if (ms->ms_values[i] > *max)
			*max = ms->ms_values[i];
	}
}

void
ladder_option(struct ladder *ld, const char *name, double value)
{
	int i = 0;

	while (ld->ld_options[i] != NULL)
		i++;
	ld->ld_options[i] = name;
	ld->ld_values[i] = value;
}

/* What follows the first colon of the line of /proc/cpuinfo. */
static void
cpu_model(char *buf, size_t size)
{
	char line[512], *colon;
	FILE *f = fopen("/proc/cpuinfo", "re");

	snprintf(buf, size, "unknown");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		colon = strchr(line, ':');
		if (colon == NULL || strncmp(line, "model name", 10) != 0)
			continue;
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(buf, size, "%s", colon + 1 + strspn(colon + 1, " "));
		break;
	}
	if (f != NULL)
		fclose(f);
}

static void
put_string(const char *s)
{
	putchar('"');
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			putchar('\\');
		putchar((unsigned char)*s < ' ' ? ' ' : *s);
	}
	putchar('"');
}

static void
put_member(const char *name, const char *value)
{
	printf("\"%s\": ", name);
	put_string(value);
	printf(", ");
}

static void
put_number(const char *name, double value)
{
	if (value > 0)
		printf("\"%s\": %.9g", name, value);
	else
		printf("\"%s\": null", name);
}

static void
put_measure(const struct ladder *ld, const struct rung *ru, int m)
{
	const struct measure *ms = &ru->ru_measures[m];
	double min, max;
	int i;

	put_member("measure", ld->ld_measures[m]);
	put_member("unit", ld->ld_units[m]);
	printf("\"values\": [");
	for (i = 0; i < ms->ms_count; i++)
		printf("%s%.9g", i == 0 ? "" : ", ", ms->ms_values[i]);
	extremes(ms, &min, &max);
	if (ms->ms_count > 0)
		printf("], \"median\": %.9g, \"min\": %.9g, \"max\": %.9g, ",
		    ladder_median(ms), min, max);
	else
		printf("], \"median\": null, \"min\": null, \"max\": null, ");
	put_number("source", ru->ru_sources[m]);
}

static void
put_rung(const struct ladder *ld, const struct rung *ru)
{
	int m;

	printf("{");
	put_member("name", ru->ru_name);
	put_measure(ld, ru, 0);
	printf(", \"also\": [");
	for (m = 1; m < LADDER_MEASURES && ld->ld_measures[m] != NULL; m++) {
		printf(m == 1 ? "{" : ", {");
		put_measure(ld, ru, m);
		printf("}");
	}
	printf("], \"why_not\": ");
	if (ru->ru_why_not[0] != '\0')
		put_string(ru->ru_why_not);
	else
		printf("null");
	printf("}");
}

static void
put_reference(const struct reference *rf)
{
	printf("{");
	put_member("name", rf->rf_name);
	put_number("median", ladder_median(&rf->rf_measure));
	printf(", ");
	put_number("source", rf->rf_source);
	printf("}");
}

static void
print_json(const struct ladder *ld, const struct utsname *un, const char *cpu)
{
	int i;

	printf("{");
	put_member("ladder", ld->ld_name);
	put_member("source", ld->ld_source);
	printf("\"less_is_faster\": %s, \"environment\": {",
	    ld->ld_less_is_faster ? "true" : "false");
	put_member("kernel", un->release);
	put_member("machine", un->machine);
	put_member("cpu", cpu);
	put_member("huge_pages", ld->ld_huge);
	printf("\"cpus\": %ld}, \"options\": {", sysconf(_SC_NPROCESSORS_ONLN));
	for (i = 0; i < LADDER_OPTIONS && ld->ld_options[i] != NULL; i++)
		printf("%s\"%s\": %.15g", i == 0 ? "" : ", ", ld->ld_options[i],
		    ld->ld_values[i]);
	printf("}, ");
	put_member("notes", ld->ld_notes);
	printf("\"references\": [");
	for (i = 0; i < ld->ld_nreferences; i++) {
		printf(i == 0 ? "" : ", ");
		put_reference(&ld->ld_references[i]);
	}
	printf("], ");
	printf("\"rungs\": [");
	for (i = 0; i < ld->ld_nrungs; i++) {
		printf(i == 0 ? "" : ", ");
		put_rung(ld, &ld->ld_rungs[i]);
	}
	printf("]}\n");
}

/* A column for the source only where it has a figure. */
static bool
has_source(const struct ladder *ld, int m)
{
	int i;

	for (i = 0; i < ld->ld_nrungs; i++)
		if (ld->ld_rungs[i].ru_sources[m] > 0)
			return true;
	return false;
}

static void
print_heading(const struct ladder *ld)
{
	int m, columns = 6;

	printf("| %s | %s, %s | min–max | × first | there | × first there |",
	    ld->ld_name, ld->ld_measures[0], ld->ld_units[0]);
	for (m = 1; m < LADDER_MEASURES && ld->ld_measures[m] != NULL; m++) {
		printf(" %s%s%s |", ld->ld_measures[m],
		    ld->ld_units[m][0] == '\0' ? "" : ", ", ld->ld_units[m]);
		columns++;
		if (!has_source(ld, m))
			continue;
		printf(" there |");
		columns++;
	}
	printf("\n|---|");
	while (--columns > 0)
		printf("---:|");
	printf("\n");
}

static void
cell(double value)
{
	if (value >= 1000)
		printf(" %.0f |", value);
	else if (value > 0)
		printf(" %.3g |", value);
	else
		printf(" – |");
}

static void
cell_ratio(const struct ladder *ld, double first, double value)
{
	if (first <= 0 || value <= 0)
		printf(" – |");
	else
		printf(" %.1f |",
		    ld->ld_less_is_faster ? first / value : value / first);
}

static void
print_rung(const struct ladder *ld, const struct rung *ru)
{
	const struct measure *ms = ru->ru_measures;
	const struct rung *first = ld->ld_rungs;
	double min, max;
	int m;

	printf("| %s |", ru->ru_name);
	cell(ladder_median(ms));
	extremes(ms, &min, &max);
	if (ms->ms_count > 0)
		printf(" %.3g–%.3g |", min, max);
	else
		printf(" – |");
	cell_ratio(ld, ladder_median(first->ru_measures), ladder_median(ms));
	cell(ru->ru_sources[0]);
	cell_ratio(ld, first->ru_sources[0], ru->ru_sources[0]);
	for (m = 1; m < LADDER_MEASURES && ld->ld_measures[m] != NULL; m++) {
		if (ms[m].ms_count > 0 && ladder_median(&ms[m]) <= 0)
			printf(" 0 |");
		else
			cell(ladder_median(&ms[m]));
		if (has_source(ld, m))
			cell(ru->ru_sources[m]);
	}
	printf("\n");
}

static void
print_table(const struct ladder *ld, const struct utsname *un, const char *cpu)
{
	const struct rung *ru;
	int i;

	print_heading(ld);
	for (i = 0; i < ld->ld_nrungs; i++)
		print_rung(ld, &ld->ld_rungs[i]);
	printf("\nHere: Linux %s, %s, %ld CPUs. There: %s. Huge pages: %s.",
	    un->release, cpu, sysconf(_SC_NPROCESSORS_ONLN), ld->ld_source,
	    ld->ld_huge);
	for (i = 0; i < LADDER_OPTIONS && ld->ld_options[i] != NULL; i++)
		printf("%s%s %.15g", i == 0 ? " Options: " : ", ",
		    ld->ld_options[i], ld->ld_values[i]);
	printf(".\n");
	for (i = 0; i < ld->ld_nreferences; i++) {
		printf("%s:", ld->ld_references[i].rf_name);
		cell(ladder_median(&ld->ld_references[i].rf_measure));
		printf(" there:");
		cell(ld->ld_references[i].rf_source);
		printf("\n");
	}
	printf("%s\n", ld->ld_notes);
	for (i = 0; i < ld->ld_nrungs; i++) {
		ru = &ld->ld_rungs[i];
		if (ru->ru_why_not[0] != '\0')
			printf("\"%s\" could not run: %s.\n", ru->ru_name,
			    ru->ru_why_not);
	}
	printf("\n");
}

void
ladder_print(const struct ladder *ld, bool json)
{
	struct utsname un;
	char cpu[128];

	if (uname(&un) == -1)
		err(1, "uname");
	cpu_model(cpu, sizeof(cpu));
	if (json)
		print_json(ld, &un, cpu);
	else
		print_table(ld, &un, cpu);
}

size_t
ladder_number(const char *option, const char *text, size_t min)
{
	static const char units[] = "kmg";
	unsigned long long n;
	const char *unit;
	char *end;

	n = strtoull(text, &end, 10);
	unit = *end == '\0' ? NULL : strchr(units, *end);
	if (unit != NULL && n < 1ull << 32) {
		n <<= 10 * (unit - units + 1);
		end++;
	}
	if (end == text || *end != '\0' || text[0] == '-' || n < min ||
	    n > 1ull << 42)
		errx(2, "%s %s: not a number of at least %zu", option, text,
		    min);
	return n;
}

int
ladder_rounds(const char *text)
{
	size_t n = ladder_number("--rounds", text, 1);

	if (n > LADDER_ROUNDS)
		errx(2, "--rounds: at most %d", LADDER_ROUNDS);
	return (int)n;
}

void
ladder_test(bool ok, const char *name)
{
	printf("%s %d - %s\n", ok ? "ok" : "not ok", ++tests, name);
	fflush(stdout);
	failures += !ok;
}

void
ladder_skip(const char *name, const char *why)
{
	printf("ok %d - %s # SKIP %s\n", ++tests, name, why);
	fflush(stdout);
}

int
ladder_tested(void)
{
	printf("1..%d\n", tests);
	return failures == 0 ? 0 : 1;
}
