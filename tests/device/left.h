/* left.h: what a suite leaves behind once all its contexts are closed: of the stand-in for Metal, objects
 * that nobody released, and what it was misused for. */
#ifndef TG_TESTS_LEFT_H
#define TG_TESTS_LEFT_H
#include "emu/metal_emu.h"
#include <stdio.h>

/* How many kinds of things are left; they are named. */
static inline int left_behind(void) {
  MetalMockCounts n = metal_mock_left();
  if (n.objects || n.pools) fprintf(stderr, "left: %d objects, %d pools\n", n.objects, n.pools);
  if (n.misuses) fprintf(stderr, "misused %d times, at last: %s\n", (int)n.misuses, metal_mock_misuse());
  return (n.objects || n.pools) + (n.misuses > 0);
}
#endif
