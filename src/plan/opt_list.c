/* opt_list.c: lists of opts as text (opt.h). In: "UPCAST r0 4, STAGE p1". Out: the list; and back. */
#include "plan/opt.h"
#include <stdlib.h>
#include <string.h>

static const char *const opt_names[] = {[OPT_THREAD] = "THREAD", [OPT_ONLINE] = "ONLINE",
                                        [OPT_TILE] = "TILE",     [OPT_STAGE] = "STAGE",
                                        [OPT_SWAP] = "SWAP",     [OPT_LOCAL] = "LOCAL",
                                        [OPT_UPCAST] = "UPCAST", [OPT_UPCASTTOP] = "UPCASTTOP",
                                        [OPT_VEC] = "VEC",       [OPT_UNROLL] = "UNROLL",
                                        [OPT_GROUP] = "GROUP",   [OPT_TC] = "TC",
                                        [OPT_TC4] = "TC4",       [OPT_DOUBLE_BUFFER] = "DOUBLE_BUFFER"};

int opt_rank(OptOp op) {
  static const uint8_t rank[] = {
      [OPT_ONLINE] = 0, [OPT_TILE] = 1,          [OPT_STAGE] = 1, [OPT_SWAP] = 2,   [OPT_TC] = 3,
      [OPT_TC4] = 3,    [OPT_DOUBLE_BUFFER] = 3, [OPT_LOCAL] = 4, [OPT_UPCAST] = 4, [OPT_UPCASTTOP] = 4,
      [OPT_VEC] = 4,    [OPT_UNROLL] = 4,        [OPT_GROUP] = 4};
  return rank[op];
}

static bool has_two_ranges(OptOp op) { return op == OPT_SWAP || op == OPT_TC || op == OPT_TC4; }

void opt_print(Str *out, const Opt *o) {
  if (out->len) str_put(out, ", ");
  str_put(out, opt_names[o->op]);
  if (o->op == OPT_STAGE) {
    str_printf(out, " p%lld", (long long)o->r);
    if (o->n != EVERY_READ) str_printf(out, " r%lld", (long long)o->n);
  } else
    str_printf(out, has_two_ranges(o->op) ? " r%lld r%lld" : " r%lld %lld", (long long)o->r, (long long)o->n);
}

/* Parses `r3`, `p3` or `3`. letter: the first letter, or 0. Returns the end of the operand, or NULL if there
 * is none. */
static const char *operand(const char *p, char letter, int64_t *v) {
  char *end;
  p += strspn(p, " ");
  if (letter && *p++ != letter) return NULL;
  *v = strtoll(p, &end, 10);
  return end != p && *v >= 0 && *p >= '0' ? end : NULL; /* no sign, no white space */
}

bool opts_parse(const char *text, TgMem *mem, OptVec *out, TgError *err) {
  for (const char *p = text; *(p += strspn(p, " ,"));) {
    size_t len = strcspn(p, " ,"), op = 0;
    while (op < TG_COUNT(opt_names) && !(strlen(opt_names[op]) == len && !strncmp(p, opt_names[op], len)))
      op++;
    if (op == TG_COUNT(opt_names))
      return error_set(err, TG_ERR_VALUE,
                       "opts: '%.*s' is none of THREAD ONLINE TILE STAGE SWAP TC TC4 DOUBLE_BUFFER LOCAL "
                       "UPCAST UPCASTTOP VEC UNROLL GROUP",
                       (int)TG_MIN(len, 40), p),
             false;
    Opt o = {.op = (OptOp)op};
    bool two = has_two_ranges((OptOp)op), stage = op == OPT_STAGE;
    const char *end = operand(p + len, stage ? 'p' : 'r', &o.r);
    const char *second = end ? operand(end, two || stage ? 'r' : 0, &o.n) : NULL;
    if (stage && !second) o.n = EVERY_READ;
    if (second || !stage) end = second;
    if (!end || (!two && !stage && o.n < 1))
      return error_set(err, TG_ERR_VALUE, "opts: %s needs %s", opt_names[op],
                       two     ? "two ranges, as in SWAP r0 r1"
                       : stage ? "a buffer, as in STAGE p1, and maybe a range that its reads move with, as "
                                 "in STAGE p1 r0"
                               : "a range and a size, as in UPCAST r0 4"),
             false;
    if (!vec_push(mem, out, o)) return error_no_memory(err, "opts"), false;
    p = end;
  }
  return true;
}
