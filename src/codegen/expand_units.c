/* expand_units.c: expands statements of matrix units. In: an ACC or STORE of a WMMA, whose operands have
 * ranges of their own. Out: the unit's instruction on the vectors of a thread's fragments. Fragments that
 * are rows of shared memory are read together. On a CPU the operands are blocks of memory instead, given
 * by their beginning and the distance of their rows. */
#include "codegen/expand.h"
#include "uop/matrix.h"
#include <string.h>

/* ---- steps of a matrix unit */
bool is_fragment(const ExpRange *r) {
  return r->r->arg.range.of == FRAGMENT_OF_A || r->r->arg.range.of == FRAGMENT_OF_B;
}

/* Writes to out[] the vectors of a thread's fragment of an operand, in order. */
static bool fragment(Exp *x, UOp *value, RangeOf whose, const MatrixOperand *o, const int *chunk, UOp **out) {
  int at[MAX_EXP], vector = -1;
  memcpy(at, chunk, sizeof at);
  for (int e = 0; e < x->n; e++)
    if (!x->r[e].vec && x->r[e].r->arg.range.of == (int32_t)whose) vector = e;
  for (int i = 0; i < o->elements / o->together; i++) {
    if (vector >= 0) at[vector] = i;
    if (!(out[i] = splat(x, chunk_value(x, value, at), o->together))) return false;
  }
  return true;
}

/* ---- fragments read by rows: each of the 32 threads of a warp names 16 bytes of shared memory, and the
 * instruction that loads them distributes them to the threads (FRAGMENT) */
enum { MOST_VECTORS = 16, ROWS = 8 };

typedef struct Rows {
  Exp *x;
  UOp *thread;         /* the thread's number in its warp */
  UOp *memory, *first; /* the place of element 0 of word 0 of thread 0 */
  int64_t pitch;       /* elements from one row to the next */
  bool turned;         /* neighbours in a word are in neighbouring rows */
  int64_t word[4];     /* elements from word 0 to word i */
  int nword, together;
} Rows;

/* The INDEX that element j of a word is loaded from; the element is *lane elements past it. NULL: it is
 * not loaded from shared memory. */
static UOp *load_of(UOp *word, int j, int64_t *lane) {
  UOp *v = word;
  *lane = j;
  if (v->op == OPS_VECTORIZE && v->nsrc > 1) {
    v = v->src[j];
    *lane = 0;
  }
  if (v->op != OPS_LOAD || v->nsrc != 1 || v->src[0]->op != OPS_INDEX || v->src[0]->nsrc != 2) return NULL;
  return v->src[0]->src[0]->op == OPS_DEFINE_LOCAL ? v->src[0] : NULL;
}

/* *by: how far b is past a. Returns false if that is not constant. */
static bool apart(Kernel *k, UOp *a, UOp *b, int64_t *by) {
  UOp *d = ix(k, OPS_SUB, b, a);
  if (d && is_const(d)) *by = d->arg.v.i;
  return d && is_const(d);
}

/* The place `at` for thread number t. */
static UOp *in_thread(const Rows *r, UOp *at, int t) {
  Kernel *k = r->x->k;
  UOp *number = num(k, t);
  return number ? simp(k, kernel_with(k, at, 1, (UOp **)&r->thread, &number)) : NULL;
}

static UOp *thread_in(Kernel *k, UOp *at) { /* the index of the block's axis that is one warp */
  UOpVec order = {0};
  UOp *thread = NULL;
  bool ok = kernel_nodes(k, at, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    bool first = u->op == OPS_SPECIAL && u->arg.special.local && u->arg.special.dim == 0;
    if (first && is_const_int(u->src[0], MATRIX_THREADS)) thread = u;
  }
  vec_free(k->mem, &order);
  return thread;
}

/* Whether the words are laid out so that rows of eight contain them. For two elements in a word, element j
 * of word i of thread t is at word[i] + pitch * (t / 4) + 2 * (t % 4) + j; or, if turned, at word[i] +
 * pitch * (2 * (t % 4) + j) + t / 4. */
static bool rows_found(Rows *r, UOp *const *words) {
  Kernel *k = r->x->k;
  int64_t lane, by, size = (int64_t)dtype_size((DType)words[0]->dtype), row = MATRIX_ROW_BYTES / size;
  UOp *zero = load_of(words[0], 0, &lane), *place = zero ? zero->src[1] : NULL;
  if (!zero || r->nword > 4 || size * r->together != MATRIX_WORD_BYTES || !(r->thread = thread_in(k, place)))
    return false;
  r->memory = zero->src[0];
  r->first = in_thread(r, place, 0);
  for (int i = 0; r->first && i < r->nword; i++)
    for (int j = 0; j < r->together; j++) {
      UOp *x = load_of(words[i], j, &lane);
      if (!x || x->src[0] != r->memory || !apart(k, place, x->src[1], &by)) return false;
      by += lane;
      if (j == 0) r->word[i] = by;
      if (i == 0 && j == 1) {
        r->turned = by != 1;
        r->pitch = by;
      }
      if (by != r->word[i] + j * (r->turned ? r->pitch : 1)) return false;
    }
  if (!r->first || (r->turned && size != 2)) return false;
  UOp *next = in_thread(r, place, 4);
  if (!r->turned && (!next || !apart(k, r->first, next, &r->pitch))) return false;
  for (int t = 0; t < MATRIX_THREADS; t++) {
    UOp *at = in_thread(r, place, t);
    int64_t want = r->turned ? 2 * (t % 4) * r->pitch + t / 4 : t / 4 * r->pitch + t % 4 * r->together;
    if (!at || !apart(k, r->first, at, &by) || by != want) return false;
  }
  bool aligned = uop_is_multiple(r->first, row) && r->pitch % row == 0;
  for (int i = 0; i < r->nword; i++)
    aligned = aligned && r->word[i] % row == 0;
  return aligned && (r->nword < 4 || r->word[3] == r->word[1] + r->word[2]);
}

/* Replaces the words by a FRAGMENT of rows: thread 8 i + r names row r of word i. */
static bool by_rows(Exp *x, UOp **words, int n, int together) {
  Kernel *k = x->k;
  Rows r = {.x = x, .nword = n, .together = together};
  if (!k->ren || !k->ren->has_rows || !rows_found(&r, words)) return true;
  DType type = (DType)words[0]->dtype;
  int64_t size = (int64_t)dtype_size(type);
  UOp *at = ix(k, OPS_MUL, ix(k, OPS_FLOORMOD, r.thread, num(k, ROWS)), num(k, r.pitch));
  at = ix(k, OPS_ADD, r.first, at);
  for (int bit = 1; bit < n; bit *= 2) {
    UOp *on = ix(k, OPS_FLOORMOD, ix(k, OPS_FLOORDIV, r.thread, num(k, (int64_t)ROWS * bit)), num(k, 2));
    at = ix(k, OPS_ADD, at, ix(k, OPS_MUL, on, num(k, r.word[bit])));
  }
  int lanes = (int)(MATRIX_ROW_BYTES / size);
  UOp *place = at ? UNEW(k->st, OPS_INDEX, type, lanes, ARG0, r.memory, at) : NULL;
  UOp *row = place ? UNEW(k->st, OPS_LOAD, type, lanes, ARG0, place) : NULL;
  UOp *all = row ? UNEW(k->st, OPS_FRAGMENT, type, n * together, ((Arg){.i = r.turned}), row) : NULL;
  for (int i = 0; all && i < n; i++)
    if (!(words[i] = UNEW(k->st, OPS_GEP, type, together, ((Arg){.i = (int64_t)i * together}), all)))
      return false;
  return all != NULL;
}

/* The beginning of an operand of this step, for a unit that reads shared memory by itself. */
static UOp *begin_of(Exp *x, const UOp *index, const int *chunk) {
  int pos[MAX_EXP];
  positions(x, chunk, 0, pos);
  UOp *at = lane_value(x, index->src[1], pos);
  return at ? UNEW(x->k->st, OPS_INDEX, (DType)index->dtype, 1, ARG0, index->src[0], at) : NULL;
}

static bool write_shared(Exp *x, const UOp *u, UOp *piece, const int *chunk, UOpVec *out) {
  UOpStore *st = x->k->st;
  const UOp *value = u->src[1];
  UOp *a = begin_of(x, value->src[0], chunk), *b = begin_of(x, value->src[1], chunk);
  UOp *was = UNEW(st, OPS_LOAD, (DType)piece->dtype, piece->lanes, ARG0, piece);
  UOp *sum =
      a && b && was ? UNEW(st, OPS_WMMA, (DType)piece->dtype, piece->lanes, value->arg, a, b, was) : NULL;
  UOp *store = sum ? UNEW(st, OPS_STORE, DT_VOID, 1, ARG0, piece, sum) : NULL;
  return store && vec_push(x->k->mem, out, store);
}

bool write_matrix(Exp *x, UOp *u, const int *chunk, UOpVec *out) {
  UOpStore *st = x->k->st;
  UOp *value = u->src[1], *piece = reg_piece(x, u->src[0], chunk), *src[2 * MOST_VECTORS + 1];
  const MatrixShape *s = &matrix_shapes[value->arg.i];
  const MatrixOperand *a = &s->operand[MATRIX_A], *b = &s->operand[MATRIX_B];
  if (piece && matrix_in_shared(s)) return write_shared(x, u, piece, chunk, out);
  int na = a->elements / a->together, nb = b->elements / b->together;
  if (!piece || na > MOST_VECTORS || nb > MOST_VECTORS) return false;
  if (!fragment(x, value->src[0], FRAGMENT_OF_A, a, chunk, src)) return false;
  if (!fragment(x, value->src[1], FRAGMENT_OF_B, b, chunk, src + na)) return false;
  if (!by_rows(x, src, na, a->together) || !by_rows(x, src + na, nb, b->together)) return false;
  src[na + nb] = UNEW(st, OPS_LOAD, (DType)piece->dtype, piece->lanes, ARG0, piece);
  UOp *sum = uop_new(st, OPS_WMMA, (DType)piece->dtype, piece->lanes, na + nb + 1, src, value->arg);
  UOp *store = UNEW(st, OPS_STORE, DT_VOID, 1, ARG0, piece, sum);
  return store && vec_push(x->k->mem, out, store);
}

/* ---- sums by a unit whose operands are in memory, given by the places where its loops over rows, columns
 * and steps begin. A loop of one row no longer exists here. */
static UOp *at_place(Exp *x, const UOp *u, UOp *e, int64_t column) {
  Kernel *k = x->k;
  int n = u->nsrc - 2;
  UOp *zero = num(k, 0), *to[3] = {zero, zero, zero};
  to[n - 2] = num(k, column);
  UOp *r = zero && to[n - 2] ? kernel_with(k, e, n, (UOp **)u->src + 2, to) : NULL;
  return simp(k, r);
}

bool write_block(Exp *x, UOp *u, UOpVec *out) {
  Kernel *k = x->k;
  bool rows = u->nsrc == 5;
  if (!rows && u->nsrc != 4) return false;
  UOp *sum = u->src[1], *to = at_place(x, u, u->src[0], 0), *src[7];
  const MatrixShape *s = &matrix_shapes[sum->arg.i];
  UOp *column = u->src[u->nsrc - 2], *step = u->src[u->nsrc - 1];
  int64_t pitch = 0;
  if (rows && !moves_evenly(k, sum->src[0]->src[1], u->src[2], &pitch)) return false;
  UOp *b = sum->src[1]->src[1], *next = at_place(x, u, b, column->src[0]->arg.v.i > s->n ? s->n : 0);
  UOp *panel = ix(k, OPS_SUB, next, at_place(x, u, b, 0));
  src[0] = at_place(x, u, sum->src[0], 0);
  src[1] = at_place(x, u, sum->src[1], 0);
  src[2] = rows ? u->src[2]->src[0] : num(k, 1);
  src[3] = column->src[0];
  src[4] = step->src[0];
  src[5] = num(k, pitch);
  src[6] = panel;
  bool ok = to && src[0] && src[1] && src[2] && src[5] && src[6] && is_const(src[6]);
  UOp *v = ok ? uop_new(k->st, OPS_WMMA, (DType)sum->dtype, 1, 7, src, sum->arg) : NULL;
  UOp *store = v ? UNEW(k->st, OPS_STORE, DT_VOID, 1, ARG0, to, v) : NULL;
  return store && vec_push(k->mem, out, store);
}
