/* env.c: the environment's variables. In: variables of the process. Out: TgEnv, read once by tg_open. A value
 * that a variable may not have is an error, never a default. */
#define _GNU_SOURCE
#include "base/base.h"
#include <errno.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The names stand in the tables themselves, so that a row needs no pointer that the loader has to set. */
typedef struct EnvNumber {
  char name[20];
  int at, lo, hi, otherwise; /* at: of the int in TgEnv */
} EnvNumber;

typedef struct EnvText {
  char name[20];
  int at, cap; /* of the text in TgEnv */
} EnvText;

#define NUMBER(name, field, lo, hi, otherwise)                                                               \
  { name, offsetof(TgEnv, field), lo, hi, otherwise }
#define TEXT(name, field)                                                                                    \
  { name, offsetof(TgEnv, field), sizeof((TgEnv *)0)->field }

static const EnvText texts[] = {TEXT("TG_DEV", dev),
                                TEXT("TG_COMM", comm),
                                TEXT("TG_COMM_NAME", comm_name),
                                TEXT("TG_COMM_MACHINE", comm_machine),
                                TEXT("TG_CC", cc),
                                TEXT("TG_OPTS", opts),
                                TEXT("TG_SKIP", skip),
                                TEXT("TG_DUMP", dump_dir),
                                TEXT("TG_PROFILE", profile),
                                TEXT("TG_VIZ", viz),
                                TEXT("TG_EXPLAIN", explain),
                                TEXT("TG_EMU_ARCHS", emulate_archs)};
static const EnvNumber numbers[] = {NUMBER("TG_DEBUG", debug, 0, 9, 0),
                                    NUMBER("TG_THREADS", threads, 0, 1024, 0),
                                    NUMBER("TG_FUSE", fuse, 0, 1, 1),
                                    NUMBER("TG_NOOPT", noopt, 0, 1, 0),
                                    NUMBER("TG_BATCH_INVARIANT", invariant, 0, 1, 0),
                                    NUMBER("TG_PREPACK", prepack, 0, 2, 1),
                                    NUMBER("TG_SPEC", spec, 0, 1, 0),
                                    NUMBER("TG_CACHE", cache, 0, 1, 1),
                                    NUMBER("TG_TF32", tf32, 0, 1, 0),
                                    NUMBER("TG_WGMMA", wgmma, 0, 1, 0),
                                    NUMBER("TG_ALLREDUCE", allreduce, 0, 4, 0),
                                    NUMBER("TG_ALLREDUCE_CAST", allreduce_cast, 0, 1, 0),
                                    NUMBER("TG_COMM_RANK", comm_rank, 0, INT32_MAX, 0),
                                    NUMBER("TG_COMM_SIZE", comm_size, 1, INT32_MAX, 1),
                                    NUMBER("TG_COMM_TIMEOUT", comm_timeout, 1, 1000000, 300),
                                    NUMBER("TG_COMM_BUCKET", comm_bucket, 0, INT32_MAX, 4 << 20),
                                    NUMBER("TG_BEAM", beam, 0, 64, 0),
                                    NUMBER("TG_EMU", emulate, 0, INT32_MAX, 0),
                                    NUMBER("TG_CC_LIMIT", cc_limit, 1, 86400, 60),
                                    NUMBER("TG_AMX", amx, 0, 1, 1),
                                    NUMBER("TG_DOT", dot, 0, 1, 1)};
/* What is read one by one, here or elsewhere. */
static const char others[][20] = {"TG_TRACE",       "TG_RULE_LIMIT", "TG_OPT_LIMIT", "TG_FUSE_LIMIT",
                                  "TG_LOADER",      "TG_LINKS",      "TG_MODELS",    "HF_ENDPOINT",
                                  "XDG_CACHE_HOME", "HOME",          "PATH",         "TMPDIR"};

#undef NUMBER
#undef TEXT

const char *env_name(int i) {
  const int n = TG_COUNT(numbers), t = TG_COUNT(texts), o = TG_COUNT(others);
  return i < 0           ? NULL
         : i < t         ? texts[i].name
         : i < t + n     ? numbers[i - t].name
         : i < t + n + o ? others[i - t - n]
                         : NULL;
}

static TgStatus env_int(TgError *err, const char *name, int64_t lo, int64_t hi, int64_t *out) {
  const char *s = getenv(name);
  if (!s || !*s) return TG_OK;
  char *end;
  errno = 0;
  long long v = strtoll(s, &end, 10);
  if (*end || errno || v < lo || v > hi)
    return error_set(err, TG_ERR_VALUE, "environment: %s=%.40s: expected a whole number from %lld to %lld",
                     name, s, (long long)lo, (long long)hi);
  *out = v;
  return TG_OK;
}

static TgStatus env_text(TgError *err, const char *name, char *out, size_t cap) {
  const char *s = getenv(name);
  if (!s) return TG_OK;
  if (strlen(s) >= cap)
    return error_set(err, TG_ERR_VALUE, "environment: %s is longer than %zu bytes", name, cap - 1);
  memcpy(out, s, strlen(s) + 1);
  return TG_OK;
}

/* "10:10,1.25:50": gigabytes per second and microseconds per message, within a machine and between
 * machines. */
static TgStatus env_links(TgError *err, double *links) {
  const double usual[] = {10, 10, 1.25, 50};
  const char *s = getenv("TG_LINKS");
  char end = 0;
  memcpy(links, usual, sizeof usual);
  int n = s && *s ? sscanf(s, "%lf:%lf,%lf:%lf%c", &links[0], &links[1], &links[2], &links[3], &end) : 4;
  for (int i = 0; i < 4; i++)
    if (n != 4 || !(links[i] > 0 && links[i] < 1e9))
      return error_set(err, TG_ERR_VALUE, "environment: TG_LINKS=%.40s: expected GB/s:us,GB/s:us", s);
  links[0] *= 1e3; /* bytes per microsecond */
  links[2] *= 1e3;
  return TG_OK;
}

/* Reads a variable that may be unset or have one of two known values. other: the second value, or NULL. */
static TgStatus env_word(TgError *err, const char *name, const char *word, int *is_set, const char *other,
                         int *is_other) {
  const char *s = getenv(name);
  if (!s || !*s) return TG_OK;
  bool first = !strcmp(s, word), second = other && !strcmp(s, other);
  if (first) *is_set = 1;
  if (second) *is_other = 1;
  if (first || second) return TG_OK;
  return error_set(err, TG_ERR_VALUE, "environment: %s=%.40s: it may be '%s'%s%s", name, s, word,
                   other ? " or " : "", other ? other : "");
}

TgStatus env_read(TgEnv *env, TgError *err) {
  char *base = (char *)env;
  TgStatus s = TG_OK;
  memset(env, 0, sizeof *env);
  env->rule_limit = env->opt_limit = env->fuse_limit = -1;
  for (size_t i = 0; !s && i < TG_COUNT(numbers); i++) {
    const EnvNumber *r = &numbers[i];
    int64_t v = r->otherwise;
    s = env_int(err, r->name, r->lo, r->hi, &v);
    *(int *)(base + r->at) = (int)v;
  }
  if (!s) s = env_int(err, "TG_RULE_LIMIT", 0, INT64_MAX, &env->rule_limit);
  if (!s) s = env_int(err, "TG_OPT_LIMIT", 0, INT64_MAX, &env->opt_limit);
  if (!s) s = env_int(err, "TG_FUSE_LIMIT", 0, INT64_MAX, &env->fuse_limit);
  for (size_t i = 0; !s && i < TG_COUNT(texts); i++)
    s = env_text(err, texts[i].name, base + texts[i].at, (size_t)texts[i].cap);
  if (!s) s = env_links(err, env->links);
  if (s) return s;
  if (!strcmp(env->viz, "1")) memcpy(env->viz, "tg-viz", sizeof "tg-viz");
  if (!strcmp(env->viz, "0")) *env->viz = 0;
  env->dev_set = env->dev[0] != 0;
  if ((s = env_word(err, "TG_LOADER", "library", &env->link_objects, NULL, NULL))) return s;
  return env_word(err, "TG_TRACE", "rules", &env->trace_rules, "choices", &env->trace_choices);
}
