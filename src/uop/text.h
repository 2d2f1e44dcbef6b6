/* text.h: what print.c writes, read back. In: text. Out: the same nodes, in a store. Beside the printed form
 * the parser takes infix expressions in the notation of the rules and calls inside calls: `u1 =
 * LOAD(INDEX(p0, r0 * 4 + 1))`. */
#ifndef TG_TEXT_H
#define TG_TEXT_H
#include "uop/uop.h"

typedef struct UOpText {
  UOpStore *st;
  TgMem *mem;
  Arena arena;       /* names and the program's list */
  Map names, listed; /* listed: nodes that stand in the program */
  UOpVec roots;      /* of a graph: the last line, or what `roots` names */
  Linear program;    /* n > 0: the text is a program */
  UOpVec list;
} UOpText;

/* False: err holds `line 3, column 9: expected ')', found 'x'`, or no memory is left. Free t in either case.
 */
bool uop_parse(UOpText *t, UOpStore *st, TgMem *mem, const char *text, size_t n, TgError *err);
/* One expression over the names of t. `line` is where it stands, for messages. */
UOp *uop_parse_expr(UOpText *t, const char *text, size_t n, int line, TgError *err);
void uop_text_free(UOpText *t);
/* A number in C notation, decimal or hexadecimal, or inf, nan, nan(0xBITS); no locale. Returns its length, 0:
 * none here. */
size_t text_number(const char *s, size_t n, bool *whole, int64_t *i, bool *negative, double *f);
#endif
