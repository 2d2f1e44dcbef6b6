/* cstyle_private.h: shared by the files of the C-style renderer. cstyle.c writes statements. scalar.c and
 * vector.c write the expressions in them. lanes.c writes both for arrays of lanes. operands.c writes the
 * names, constants and types that expressions consist of. */
#ifndef TG_CSTYLE_PRIVATE_H
#define TG_CSTYLE_PRIVATE_H
#include "uop/matrix.h"
#include "renderer/cstyle.h"

enum { NTMP = 64, TMP_LEN = 192, MOST_NAMED_LANES = 16, TYPE_LEN = 8 };

typedef struct C {
  const CLang *lang;
  const Linear *lin;
  TgError *err;
  Str head, body;
  Map helpers; /* hash of a helper's name -> 1 */
  int *pos;    /* by id of a UOp: its place in the list plus 1, or 0: not written yet */
  size_t npos;
  uint8_t *mask_bytes; /* by place: element size of the mask of a vector of bools */
  int *number;         /* by place: the number in its name, v12 or acc3 */
  int depth, tmp_at, nvar, nval, nreg, nlocal;
  /* by id of a UOp: a LOAD without text of its own, because a copy or a unit reads the memory; NULL: none */
  uint8_t *copied;
  bool copies;     /* there is such a copy */
  bool groups;     /* there is a unit of four warps (groups.c): .. */
  bool at_work;    /* .. its products may be under way, .. */
  bool begun;      /* .. a group of them was begun and has not ended, */
  int side;        /* .. steps left of an instruction that is already written */
  uint8_t *within; /* by place: a vector whose text, if it is short, is written where it is used */
  int *text_at;    /* by place: the position of its text in `texts` plus 1, or 0 */
  Str texts;
  const UOp *written; /* a store that was already written as the initial value of its register */
  /* meets_in_device: threads access the same buffer on both sides of a barrier */
  bool failed, meets_in_device;
  char vector[DT_COUNT][MOST_NAMED_LANES + 1][TYPE_LEN]; /* names of types */
  char tmp[NTMP][TMP_LEN]; /* ring of operand texts, valid while one statement is written */
} C;

const char *cs_stored(DType d); /* the type of an element of memory */

static inline DType cs_int_of(int nbytes) {
  return nbytes == 1 ? DT_I8 : nbytes == 2 ? DT_I16 : nbytes == 4 ? DT_I32 : DT_I64;
}

static inline DType cs_unsigned_of(DType d) {
  size_t n = dtype_size(d);
  return n == 1 ? DT_U8 : n == 2 ? DT_U16 : n == 4 ? DT_U32 : DT_U64;
}

/* ---- operands.c. A text is valid until NTMP other texts are made. Types and helpers are defined in front of
 * the kernel when they are first used. */
bool cs_fail(C *c, const UOp *u, const char *why); /* returns false; only the first reason is kept */
void cs_fmt(Str *s, const char *f, ...);           /* only %s and %d: a tenth of the cost of printf */
void cs_put(C *c, const char *f, ...);             /* the same, appended to the kernel's body */
const char *cs_text(C *c, const char *f, ...);     /* the same, as an operand's text */
extern const char *const cs_scalar[DT_COUNT];      /* the type of one element, by cs_storage */
const char *cs_type(C *c, DType d, int lanes);
/* A function of vectors. In tpl, $F is its name, $N the number of lanes, $A .. $Z the texts m[0] .. m[25]. */
void cs_helper(C *c, const char *name, const char *tpl, const char *const m[26], int lanes);
#define M(letter) [(letter) - 'A'] =
const char *cs_const(C *c, DType d, Scalar v);
int cs_place(C *c, const UOp *u);       /* its place in the list; fails if u comes later */
const char *cs_ref(C *c, const UOp *u); /* the name of a value or a memory */
const char *cs_splat(C *c, DType d, int lanes, const char *scalar);
bool cs_is_mask(C *c, const UOp *u);       /* GNU C: a vector of bools is a mask of 0 / -1 integers .. */
int cs_mask_size(C *c, const UOp *u);      /* .. of this many bytes each */
const char *cs_any(C *c, const UOp *cond); /* whether the condition holds for any lane */
bool cs_is_splat_mask(C *c, const UOp *u);
/* converted to the width of the values that it selects */
const char *cs_mask(C *c, const UOp *u, int nbytes);
const char *cs_zero(C *c, const UOp *u);                /* a zero of u's type */
void cs_line(C *c);                                     /* begins a line */
void cs_put_before(C *c, size_t at, const char *front); /* inserts text into the body */
/* ---- lanes.c: vectors as arrays of lanes. Returns false if out of memory. */
bool cs_find_lanes(C *c, TgMem *mem);
bool cs_has_lanes(const C *c, const UOp *u);
const char *cs_lane(C *c, const UOp *u, const char *lane);
/* writes the statement of the UOp at a place, if it has one */
void cs_lanes_value(C *c, const UOp *u, int at);
void cs_lanes_store(C *c, const UOp *u);
void cs_lanes_if(C *c, const UOp *u);
/* ---- copies.c: loads that a GPU makes by itself. Returns false if out of memory. */
bool cs_find_copies(C *c, TgMem *mem);
bool cs_is_copied(const C *c, const UOp *load);

/* The FRAGMENT of which v is a word, or NULL. */
static inline const UOp *cs_word_of(const UOp *v) {
  return v->op == OPS_GEP && v->src[0]->op == OPS_FRAGMENT ? v->src[0] : NULL;
}

void cs_copy(C *c, const UOp *store); /* writes the copy's statement */

/* ---- groups.c: steps of units of four warps, which read shared memory themselves and are waited for. */
static inline bool cs_is_group(const UOp *u) { /* whether u is a WMMA of such a unit */
  return HAS_GRIDS && u->op == OPS_WMMA && matrix_in_shared(&matrix_shapes[u->arg.i]);
}

void cs_find_groups(C *c);
const UOp *cs_sum_of(C *c, const UOp *u); /* the register that u steps */
void cs_group(C *c, const UOp *u, int at);
/* writes the waits that are needed before the statement at a place */
void cs_group_waits(C *c, const UOp *u, int at);
/* ---- amx.c, dots.c: write the statement of a STORE of a WMMA whose operands are in memory, and the
 * functions that it calls. The functions of both files have these arguments. */
void cs_tiles(C *c, const UOp *store);
void cs_dots(C *c, const UOp *store);
void cs_block_call(C *c, const char *name, const UOp *store);
/* The name of a function (table, indices) that looks up lanes in a table of 16 bytes of dtype d. Indices are
 * below 16. */
const char *cs_lookup(C *c, DType d, int lanes);
/* ---- scalar.c: writes the value of an elementwise op onto the body. a, b, e: texts of the operands. */
bool cs_infix(Ops op); /* whether op_c is an operator, not the name of a function of the prelude */
/* no: the text of a negation, "!" or, for masks, "~" */
void cs_bool_alu(C *c, const UOp *u, const char *a, const char *b, const char *e, const char *no);
void cs_put_table(C *c, const UOp *lookup4); /* writes the 16 bytes, in braces */
void cs_cast(C *c, DType to, DType from, const char *a);
void cs_scalar_alu(C *c, const UOp *u, const char *a, const char *b, const char *e);
/* ---- vector.c: the same for vectors of GNU C; sets mask_bytes if the result is a vector of bools */
void cs_vector_alu(C *c, const UOp *u);
#endif
