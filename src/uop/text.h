/* text.h: reads back what print.c writes. In: text. Out: the same nodes, in a store. In addition to the
 * printed form, the parser accepts infix expressions in the notation of the rules, and nested calls: `u1 =
 * LOAD(INDEX(p0, r0 * 4 + 1))`. */
#ifndef TG_TEXT_H
#define TG_TEXT_H
#include "uop/uop.h"

typedef struct UOpText {
  UOpStore *st;
  TgMem *mem;
  Arena arena;       /* for names and the program's list */
  Map names, listed; /* names; the nodes that are listed in the program */
  UOpVec roots;      /* of a graph: the last line, or the nodes that the line `roots` names */
  Linear program;    /* n > 0: the text is a program */
  UOpVec list;
} UOpText;

/* Returns false with a message in err, such as `line 3, column 9: expected ')', found 'x'`, or if out of
 * memory. Free t in either case. */
bool uop_parse(UOpText *t, UOpStore *st, TgMem *mem, const char *text, size_t n, TgError *err);
/* Parses one expression over the names of t. line: its line number, for messages. */
UOp *uop_parse_expr(UOpText *t, const char *text, size_t n, int line, TgError *err);
void uop_text_free(UOpText *t);
/* Reads a number in C notation, decimal or hexadecimal, or inf, nan, nan(0xBITS), regardless of locale.
 * Returns its length; 0: there is no number here. */
size_t text_number(const char *s, size_t n, bool *whole, int64_t *i, bool *negative, double *f);
#endif
