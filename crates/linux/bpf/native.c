/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* For tests only: the twin as this machine runs it. */
#include <linux/types.h>
#include "trial.h"

void millpond_trial_run(struct trial_case *cases, __u64 count)
{
	for (__u64 i = 0; i < count; i++)
		trial_run(&cases[i]);
}
