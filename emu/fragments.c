/* fragments.c: the table of matrix units (uop/matrix.h) as JSON: for each place, the thread and the element
 * that are there. */
#include "emu/fragments.h"
#include "uop/matrix.h"
#include <string.h>

enum { MOST_PLACES = 32 * 32 };

static void numbers_put(FILE *to, const char *name, const int *v, int n) {
  fprintf(to, ",\"%s\":[", name);
  for (int i = 0; i < n; i++)
    fprintf(to, i ? ",%d" : "%d", v[i]);
  fputc(']', to);
}

static void operand_put(FILE *to, const char *name, const MatrixOperand *o) {
  int lane[MOST_PLACES], element[MOST_PLACES], n = o->rows * o->columns;
  memset(lane, -1, sizeof lane), memset(element, -1, sizeof element);
  for (int t = 0; t < MATRIX_THREADS; t++)
    for (int e = 0; e < o->elements; e++) {
      MatrixPlace p = matrix_place(o, t, e);
      int at = p.row * o->columns + p.column;
      if (at < 0 || at >= n || n > MOST_PLACES) continue;
      lane[at] = t;
      element[at] = e;
    }
  fprintf(to, "\"%s\":{\"rows\":%d,\"columns\":%d", name, o->rows, o->columns);
  numbers_put(to, "lanes", lane, n > MOST_PLACES ? 0 : n);
  numbers_put(to, "elements", element, n > MOST_PLACES ? 0 : n);
  fputc('}', to);
}

void fragments_json(FILE *to) {
  static const char *const roles[] = {"a", "b", "c"};
  int said = 0;
  fputc('{', to);
  for (int i = 0; i < MATRIX_COUNT; i++) {
    const MatrixShape *s = &matrix_shapes[i];
    if (matrix_in_memory(s) || matrix_in_shared(s)) continue;
    fprintf(to, "%s\"%s\":{", said++ ? ",\n" : "", s->name);
    for (int r = 0; r < MATRIX_ROLES; r++) {
      if (r) fputc(',', to);
      operand_put(to, roles[r], &s->operand[r]);
    }
    fputc('}', to);
  }
  fputs("}\n", to);
}
