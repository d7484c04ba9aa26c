/*
 * policies: the tables that main puts together; each ends with one without a name.
 */
#ifndef BENCH_ADMISSION_POLICIES_H
#define BENCH_ADMISSION_POLICIES_H

#include "bench/admission/sim.h"

extern const struct policy simple_policies[];	 /* simple.c */
extern const struct policy frequency_policies[]; /* frequency.c */
extern const struct policy kernel_policies[];	 /* kernel.c */

#endif
