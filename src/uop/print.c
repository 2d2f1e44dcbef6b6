/* print.c: writes a graph as text that parse.c reads back as the same graph. In: roots, or a linear program.
 * Out: one line per node, sources first:
 *
 *   p0 = PARAM[f32, 0, 64]   slot, elements
 *   r1 = RANGE[1, LOOP](8)   NAME = OP[type, arg](sources): brackets only if they are not empty
 *   u2 = INDEX(p0, r1)       the type is written only if it does not follow from the sources
 *   u4 = SHRINK[(0, 3*v0)](u3)   symbolic sizes: sums over variables by number
 *   u3 = MUL(u2, 1.5:f32)    scalar constants are written where they are used; no dtype: an index
 *   roots u3, u2             only if the only root is not the last line
 *
 * Ranges are named by id, PARAMs by slot, all other nodes by line. A program starts with `program NAME: ..`
 * and lists its nodes in its own order. Its constants have no lines. Shapes are written after `#`, for the
 * reader. */
#include "uop/dims.h"
#include "uop/matrix.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AXIS_NAME(name) #name,
const char *const axis_type_names[AXIS_GROUP + 1] = {AXIS_TYPES(AXIS_NAME)};

/* ---- values. The locale does not affect the text: any character in printf's number that is not a digit, a
 * sign or e is the decimal point. */
static void put_float(Str *o, DType d, double f) {
  char b[40];
  if (f != f) {
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    str_put(o, "nan");
    if (bits != UINT64_C(0x7ff8000000000000)) str_printf(o, "(0x%llx)", (unsigned long long)bits);
    return;
  }
  if (isinf(f)) {
    str_put(o, f < 0 ? "-inf" : "inf");
    return;
  }
  if (f == (double)(int64_t)TG_MAX(TG_MIN(f, 1e15), -1e15)) { /* whole and exact */
    if (signbit(f)) str_put(o, "-");
    str_int(o, (int64_t)fabs(f));
    return;
  }
  /* the fewest of 6, 9, 13 or 17 digits that read back as f */
  for (int digits = 6; digits <= 17; digits += digits < 9 ? 3 : 4) {
    snprintf(b, sizeof b, "%.*g", digits, f);
    if (scalar_round(d, (Scalar){.f = strtod(b, NULL)}).f == f) break;
  }
  for (char *c = b; *c; c++)
    if (!strchr("0123456789+-e", *c)) *c = '.';
  str_put(o, b);
}

static void put_value(Str *o, DType d, Scalar v) {
  if (dtype_is_float(d))
    put_float(o, d, v.f);
  else if (d == DT_U64 && v.i < 0)
    str_printf(o, "%llu", (unsigned long long)v.i);
  else
    str_int(o, v.i);
}

static void put_ints(Str *o, UOpStore *st, const Ints *l) { /* st resolves symbolic sizes */
  str_put(o, "(");
  for (int i = 0; i < l->n; i++) {
    if (i) str_put(o, ", ");
    dim_put(o, st, l->v[i]);
  }
  str_put(o, ")");
}

static void put_type(Str *o, const UOp *u) {
  str_put(o, dtype_name((DType)u->dtype));
  if (u->lanes != 1) str_put(o, "x"), str_int(o, u->lanes);
}

static void put_two(Str *o, int64_t a, int64_t b) { str_int(o, a), str_put(o, ", "), str_int(o, b); }

static void put_origin(Str *o, int32_t of) {
  switch (of) {
  case 0: break;
  case OF_NONE: str_put(o, ", of none"); break;
  case LOCAL_OF_GRID: str_put(o, ", of grid"); break;
  case LOCAL_OF_BLOCK: str_put(o, ", of block"); break;
  case LANES_OF_COPY: str_put(o, ", of copy"); break;
  case FRAGMENT_OF_A: str_put(o, ", of a"); break;
  case FRAGMENT_OF_B: str_put(o, ", of b"); break;
  default: str_put(o, of > 0 ? ", of " : ", blocks of "); str_int(o, of > 0 ? of - 1 : BLOCKS_OF - of);
  }
}

static void put_arg(Str *o, UOpStore *st, const UOp *u) {
  switch (op_arg((Ops)u->op)) {
  case ARG_NONE: break;
  case ARG_VALUE: put_value(o, (DType)u->dtype, u->arg.v); break;
  case ARG_MEMORY: put_two(o, u->arg.param.slot, u->arg.param.nelem); break;
  case ARG_VAR: put_two(o, u->arg.var.lo, u->arg.var.hi); break;
  case ARG_SPECIAL: put_two(o, u->arg.special.dim, u->arg.special.local); break;
  case ARG_RANGE:
    str_int(o, u->arg.range.id), str_put(o, ", ");
    str_put(o, axis_type_names[u->arg.range.type]);
    put_origin(o, u->arg.range.of);
    break;
  case ARG_REDUCE: str_put(o, op_name((Ops)u->arg.reduce.op)); break;
  case ARG_AXES:
    str_put(o, op_name((Ops)u->arg.reduce.op)), str_put(o, ", ");
    put_ints(o, st, u->arg.reduce.axes);
    break;
  case ARG_SCATTER:
    str_put(o, op_name((Ops)u->arg.scatter.op));
    if (u->arg.scatter.how & SCATTER_OLD) str_put(o, ", old");
    if (u->arg.scatter.how & SCATTER_ONCE) str_put(o, ", once");
    break;
  case ARG_INTS: put_ints(o, st, u->arg.ints); break;
  case ARG_TIME:
  case ARG_NUMBER: str_int(o, u->arg.i); break;
  case ARG_GATED:
  case ARG_BOUND: str_put(o, arg_word(op_arg((Ops)u->op))); break;
  case ARG_MATRIX: str_put(o, matrix_shapes[u->arg.i].name); break;
  }
}

void uop_type_default(Ops op, int nsrc, UOp *const *src, DType *dtype, int *lanes) {
  const UOp *a = nsrc > 0 ? src[0] : NULL;
  *dtype = a ? (DType)a->dtype : DT_COUNT;
  *lanes = a ? a->lanes : 1;
  switch (op) {
  case OPS_SINK:
  case OPS_END:
  case OPS_IF:
  case OPS_ENDIF:
  case OPS_BARRIER:
  case OPS_PREFETCH:
  case OPS_LOOP:
  case OPS_ACC:
  case OPS_TUPLE:
    *dtype = DT_VOID;
    *lanes = 1;
    break;
  case OPS_STORE:
    if (!a || !a->is_tensor) {
      *dtype = DT_VOID;
      *lanes = 1;
    }
    break;
  case OPS_VAR: *dtype = DT_INDEX; break;
  case OPS_CAST:
  case OPS_BITCAST: *dtype = DT_COUNT; break;
  case OPS_WHERE:
    if (nsrc > 1) {
      *dtype = (DType)src[1]->dtype;
      *lanes = src[1]->lanes;
    }
    break;
  case OPS_VECTORIZE: *lanes = nsrc > 1 ? nsrc : 0; break;
  case OPS_LOOKUP: *lanes = nsrc > 1 ? src[1]->lanes : 0; break;
  case OPS_SHUFFLEVECTOR: *lanes = 0; break;
  case OPS_FRAGMENT:
  case OPS_WMMA: *dtype = DT_COUNT; break;
  case OPS_RANGE:
  case OPS_SPECIAL:
  case OPS_GEP:
  case OPS_INDEX: *lanes = 1; break;
  default:
    if (op_flags(op) & OPF_CMP) *dtype = DT_BOOL;
  }
}

static void put_op(Str *o, UOpStore *st, const UOp *u, bool type) {
  DType d;
  int lanes;
  uop_type_default((Ops)u->op, u->nsrc, u->src, &d, &lanes);
  type |= d != u->dtype || lanes != u->lanes;
  ArgForm form = op_arg((Ops)u->op);
  bool arg = form != ARG_NONE && (!arg_optional(form) || u->arg.i);
  str_put(o, op_name((Ops)u->op));
  if (type || arg) str_put(o, "[");
  if (type) put_type(o, u);
  if (type && arg) str_put(o, ", ");
  if (arg) put_arg(o, st, u);
  if (type || arg) str_put(o, "]");
}

void uop_line(Str *o, const UOp *u) { put_op(o, NULL, u, true); }

/* ---- names: a letter and a number for each node */
typedef struct Name {
  char letter;
  uint32_t number;
} Name;

typedef struct Names {
  UOpStore *st;
  Map of, taken;
  uint32_t line;
  bool ok;
} Names;

static bool inlined(const UOp *u) { return u->op == OPS_CONST && u->lanes == 1; }

static Name name_new(Names *n, const UOp *u) {
  int64_t own = u->op == OPS_RANGE ? u->arg.range.id : u->op == OPS_PARAM ? u->arg.param.slot : -1;
  char letter = u->op == OPS_RANGE ? 'r' : 'p';
  uint64_t key = (uint64_t)own * 2 + (u->op == OPS_RANGE), had;
  Name name = {'u', n->line++};
  if (own < 0 || own > 999999 || map_get(&n->taken, key, &had)) return name;
  n->ok &= map_put(&n->taken, key, 1);
  return (Name){letter, (uint32_t)own};
}

static void put_name(Str *o, Name n) { str_putn(o, &n.letter, 1), str_int(o, n.number); }

static void put_source(Str *o, const Names *n, const UOp *s) {
  if (inlined(s)) {
    put_value(o, (DType)s->dtype, s->arg.v);
    if (s->dtype != DT_INDEX) str_put(o, ":"), str_put(o, dtype_name((DType)s->dtype));
    return;
  }
  uint64_t v;
  if (map_get(&n->of, (uint64_t)(uintptr_t)s, &v))
    put_name(o, (Name){(char)(v >> 32), (uint32_t)v});
  else
    str_put(o, "?"); /* not defined before: the program is not well formed */
}

static void put_node(Str *o, Names *n, const UOp *u) {
  Name name = name_new(n, u);
  n->ok &= map_put(&n->of, (uint64_t)(uintptr_t)u, (uint64_t)name.letter << 32 | name.number);
  put_name(o, name), str_put(o, " = "), put_op(o, n->st, u, false);
  for (int k = 0; k < u->nsrc; k++)
    str_put(o, k ? ", " : "("), put_source(o, n, u->src[k]);
  if (u->nsrc) str_put(o, ")");
  if (u->is_tensor) str_put(o, "  # "), put_ints(o, n->st, u->shape);
  str_put(o, "\n");
}

bool uop_print(Str *out, UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots) {
  UOpVec order = {0};
  Names n = {.st = st, .ok = true};
  map_init(&n.of, mem), map_init(&n.taken, mem);
  bool ok = uop_toposort(st, mem, roots, nroots, &order);
  UOp *last = NULL;
  for (size_t i = 0; ok && i < order.len; i++)
    if (!inlined(order.at[i])) put_node(out, &n, last = order.at[i]);
  if (ok && (nroots != 1 || roots[0] != last)) {
    str_put(out, "roots");
    for (size_t i = 0; i < nroots; i++)
      str_put(out, i ? ", " : " "), put_source(out, &n, roots[i]);
    str_put(out, "\n");
  }
  ok = ok && n.ok;
  vec_free(mem, &order), map_free(&n.of), map_free(&n.taken);
  return ok && !out->oom;
}

bool uop_print_list(Str *out, const Linear *lin, TgMem *mem) {
  Names n = {.ok = true};
  map_init(&n.of, mem), map_init(&n.taken, mem);
  str_printf(out, "program %s: %d params, %d threads, grid %d %d %d, block %d %d %d\n",
             *lin->name ? lin->name : "kernel", lin->nparam, lin->nthread, lin->global[0], lin->global[1],
             lin->global[2], lin->local[0], lin->local[1], lin->local[2]);
  for (int i = 0; i < lin->n; i++)
    if (!inlined(lin->at[i])) put_node(out, &n, lin->at[i]);
  map_free(&n.of), map_free(&n.taken);
  return n.ok && !out->oom;
}

/* ---- one line, for messages */
/* Writes at most `left` nodes, so its depth is bounded, too. */
static int put_expr(Str *o, const UOp *u, int left) {
  static const char *const infix[OPS_COUNT] = {
#define INFIX(sign, op, level) [OPS_##op] = sign,
#include "uop/infix.def"
#undef INFIX
  };
  if (left <= 0) {
    str_put(o, "..");
    return 0;
  }
  left--;
  if (u->op == OPS_CONST) {
    put_value(o, (DType)u->dtype, u->arg.v);
    return left;
  }
  if (u->op == OPS_RANGE) {
    str_put(o, "r"), str_int(o, u->arg.range.id);
    return left;
  }
  if (infix[u->op] && u->nsrc == 2) {
    str_put(o, "(");
    left = put_expr(o, u->src[0], left);
    str_printf(o, " %s ", infix[u->op]);
    left = put_expr(o, u->src[1], left);
    str_put(o, ")");
    return left;
  }
  if (u->op == OPS_PARAM) {
    str_put(o, u->arg.param.slot < 0 ? "stage" : "p");
    str_int(o, u->arg.param.slot < 0 ? -1 - u->arg.param.slot : u->arg.param.slot);
    return left;
  }
  put_op(o, NULL, u, false);
  if (!u->nsrc) return left;
  str_put(o, "(");
  for (int i = 0; i < u->nsrc; i++) {
    if (i) str_put(o, ", ");
    left = put_expr(o, u->src[i], left);
  }
  str_put(o, ")");
  return left;
}

void uop_expr(Str *out, const UOp *u, int max_nodes) { put_expr(out, u, max_nodes); }
