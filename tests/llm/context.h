/* context.h: the context of a test of language models, opened and closed around a group of tests. */
#ifndef TG_TESTS_LLM_CONTEXT_H
#define TG_TESTS_LLM_CONTEXT_H
#include "llm/made.h"

static TgContext *C;
static const char *named; /* a device by name, for open_named */

static inline int open_device(const char *device) {
  C = tg_open_with(.device = device, .seed = 1);
  if (tg_error(C)) fprintf(stderr, "%s\n", tg_errmsg(C));
  return tg_error(C) != TG_OK;
}

static inline int open_cpu(void **state) {
  (void)state;
  return open_device("CPU");
}

static inline int open_interp(void **state) {
  (void)state;
  return open_device("INTERP");
}

static inline int open_named(void **state) {
  (void)state;
  return open_device(named);
}

static inline int close_it(void **state) {
  (void)state;
  tg_close(C);
  return 0;
}
#endif
