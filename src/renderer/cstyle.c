/* cstyle.c: turns linear UOps into one kernel in C, CUDA C++ or MSL. There is one statement per UOp, in
 * order. Values are numbered in order (v12, acc3; p0: buffer, r1: loop, l0: local memory), so the text
 * depends only on the program. Vector types and helpers are written in front of the kernel when they are
 * first needed. In C a vector of bools is a mask of 0 / -1 integers as wide as the values that were compared;
 * `mask_bytes` records the width. */
#include "renderer/cstyle_private.h"
#include "uop/matrix.h"
#include <stdio.h>
#include <string.h>

void cs_line(C *c) {
  static const char spaces[] = "                                ";
  for (size_t n = 2 * (size_t)c->depth, some; n; n -= some) {
    some = TG_MIN(n, sizeof spaces - 1);
    str_putn(&c->body, spaces, some);
  }
}

void cs_put_before(C *c, size_t at, const char *front) {
  size_t len = strlen(front), size = c->body.len - at;
  str_putn(&c->body, front, len);
  if (c->body.oom) return;
  memmove(c->body.at + at + len, c->body.at + at, size);
  memcpy(c->body.at + at, front, len);
}

/* Appends the lanes of a __builtin_shufflevector, each after a comma. */
static void put_lanes(C *c, int n, const int64_t *lane) {
  enum { MOST = 8 }; /* characters of one lane: two vectors have at most 510 lanes */

  if (!str_reserve(&c->body, (size_t)n * MOST)) return;
  char *to = c->body.at + c->body.len, number[INT_TEXT];
  for (int i = 0; i < n; i++) {
    *to++ = ',';
    *to++ = ' ';
    for (const char *digit = int_text(number, lane[i]); *digit; digit++)
      *to++ = *digit;
  }
  *to = 0;
  c->body.len = (size_t)(to - c->body.at);
}

/* GPU languages: the text of one lane of a short vector */
static const char *lane_ref(C *c, const UOp *u, int lane) {
  u = uop_base(u);
  if (u->op == OPS_CONST) return cs_const(c, (DType)u->dtype, u->arg.v);
  static const char *const letter[] = {"x", "y", "z", "w"};

  return u->lanes == 1 ? cs_ref(c, u) : cs_text(c, "%s.%s", cs_ref(c, u), letter[lane & 3]);
}

/* ---- memory */
/* The address space of a memory, which a cast of a pointer must repeat. */
static const char *space_of(C *c, const UOp *base) {
  return base->op == OPS_PARAM ? c->lang->device_space : c->lang->local_space;
}

/* The type by which a short vector is read and written at an offset; NULL: only lane by lane. If the offset
 * is not known to be aligned, it is an unaligned type, if the language has such types. */
static const char *vector_in_memory(C *c, const UOp *offset, DType d, int n) {
  if (!c->lang->gnu_vec && uop_is_multiple(offset, n)) return cs_type(c, d, n);
  return c->lang->gnu_vec || c->lang->packed_vec ? cs_text(c, "%su", cs_type(c, d, n)) : NULL;
}

/* Writes the value at an INDEX. */
static void load_text(C *c, const UOp *ix, const UOp *u) {
  DType d = (DType)u->dtype;
  int n = u->lanes;
  const UOp *base = uop_base(ix->src[0]);
  const char *p = cs_ref(c, base), *o = cs_ref(c, ix->src[1]), *in_memory;
  if (n == 1)
    cs_put(c, "%s[%s]", p, o);
  else if (cs_is_mask(c, u))
    cs_put(c, "(%s)(*(const %su *)(%s + %s) != 0)", cs_type(c, DT_I8, n), cs_type(c, DT_U8, n), p, o);
  else if ((in_memory = vector_in_memory(c, ix->src[1], d, n)) != NULL)
    cs_put(c, "*(%sconst %s *)(%s + %s)", space_of(c, base), in_memory, p, o);
  else if (n > 4)
    cs_fail(c, u, "so many lanes are read where they are aligned");
  else {
    cs_put(c, "%s%s", cs_type(c, d, n), c->lang->vec_open);
    for (int i = 0; i < n; i++)
      cs_put(c, "%s%s[%s + %d]", i ? ", " : "", p, o, i);
    cs_put(c, "%s", c->lang->vec_close);
  }
}

/* Whether all lanes of a load have the same constant if its gate is false. *other: the constant, or NULL for
 * 0. */
static bool has_const(const UOp *load, const UOp **other) {
  const UOp *v = load->nsrc < 2 ? NULL : load->src[1];
  *other = v && v->op == OPS_VECTORIZE && v->nsrc == 1 ? v->src[0] : v;
  return !v || is_const(*other);
}

/* Loads a vector, or a constant if the gate is false. The address is selected, so that there is no branch. If
 * there are many branches, a compiler makes such loads long before their use and runs out of registers. */
static void load_or_const(C *c, const UOp *ix, const UOp *u, const UOp *other, int id) {
  DType d = (DType)u->dtype;
  const char *type = cs_type(c, d, u->lanes), *all = cs_text(c, "zeros_%s", type);
  const char *m[26] = {['G' - 'A'] = cs_stored(d), ['V' - 'A'] = other ? cs_const(c, d, other->arg.v) : "0"};
  char bits[17];
  if (other) { /* f16 and bf16 have the same C type but different bits for a number */
    snprintf(bits, sizeof bits, "%llx", (unsigned long long)other->arg.v.i);
    all = cs_text(c, "all_%s_%s_%s", dtype_name(d), type, bits);
  }
  cs_helper(c, all, "static const $G $F[$N] = {[0 ... $N - 1] = $V};", m, u->lanes);
  cs_put(c, "%s v%d = *(const %su *)(%s ? %s + %s : %s);\n", type, id, type, cs_ref(c, ix->src[2]),
         cs_ref(c, uop_base(ix->src[0])), cs_ref(c, ix->src[1]), all);
}

const char *cs_zero(C *c, const UOp *u) {
  if (u->lanes == 1) return "0";
  return c->lang->gnu_vec
             ? cs_text(c, "(%s){0}", cs_type(c, cs_is_mask(c, u) ? DT_I8 : (DType)u->dtype, u->lanes))
             : cs_text(c, "%s%s0, 0%s%s", cs_type(c, (DType)u->dtype, u->lanes), c->lang->vec_open,
                       u->lanes > 2 ? ", 0, 0" : "", c->lang->vec_close);
}

/* A gated load reads nothing if the gate is false: it uses ?: for one lane and an if for several. */
static void render_load(C *c, const UOp *u, int id) {
  const UOp *x = uop_base(u->src[0]);
  const char *t = cs_type(c, cs_is_mask(c, u) ? DT_I8 : (DType)u->dtype, u->lanes);
  if (cs_is_mask(c, u)) c->mask_bytes[cs_place(c, u)] = 1;
  if (x->op == OPS_DEFINE_REG) {
    cs_put(c, "%s v%d = %s;\n", t, id, cs_ref(c, x));
    return;
  }
  if (x->op != OPS_INDEX || x->nsrc < 2) {
    cs_fail(c, u, "source is neither INDEX nor register");
    return;
  }
  if (!x->arg.i) {
    cs_put(c, "%s v%d = ", t, id);
    load_text(c, x, u);
    str_put(&c->body, ";\n");
    return;
  }
  const UOp *other;
  const char *g = cs_ref(c, x->src[x->nsrc - 1]);
  const char *alt = u->nsrc < 2        ? cs_zero(c, u)
                    : cs_is_mask(c, u) ? cs_mask(c, u->src[1], 1)
                                       : cs_ref(c, u->src[1]);
  if (u->lanes == 1) {
    cs_put(c, "%s v%d = %s ? ", t, id, g);
    load_text(c, x, u);
    cs_put(c, " : %s;\n", alt);
  } else if (c->lang->gnu_vec && !cs_is_mask(c, u) && has_const(u, &other)) {
    load_or_const(c, x, u, other, id);
  } else {
    cs_put(c, "%s v%d = %s;\n", t, id, alt);
    cs_line(c);
    cs_put(c, "if (%s) v%d = ", g, id);
    load_text(c, x, u);
    str_put(&c->body, ";\n");
  }
}

/* Whether u is a WMMA whose operands are in memory. Its STORE writes the statement. */
static bool is_block(const UOp *u) { return u->op == OPS_WMMA && matrix_in_memory(&matrix_shapes[u->arg.i]); }

/* A vector is stored as a whole if the language allows any address, or if the address is known to be
 * aligned. */
static void render_store(C *c, const UOp *u) {
  const UOp *x = uop_base(u->src[0]), *v = u->src[1];
  const char *val = cs_is_mask(c, v) ? cs_mask(c, v, 1) : cs_ref(c, v);
  int n = v->lanes;
  if (x->op == OPS_DEFINE_REG) {
    cs_put(c, "%s = %s;\n", cs_ref(c, x), val);
    return;
  }
  if (x->op != OPS_INDEX || x->nsrc < 2) {
    cs_fail(c, u, "target is neither INDEX nor register");
    return;
  }
  const UOp *base = uop_base(x->src[0]);
  const char *p = cs_ref(c, base), *o = cs_ref(c, x->src[1]), *in_memory;
  if (x->arg.i) cs_put(c, "if (%s) ", cs_ref(c, x->src[x->nsrc - 1]));
  if (n == 1)
    cs_put(c, "%s[%s] = %s;\n", p, o, val);
  else if (cs_is_mask(c, v))
    cs_put(c, "*(%su *)(%s + %s) = (%s)(%s & 1);\n", cs_type(c, DT_U8, n), p, o, cs_type(c, DT_U8, n), val);
  else if ((in_memory = vector_in_memory(c, x->src[1], (DType)v->dtype, n)) != NULL)
    cs_put(c, "*(%s%s *)(%s + %s) = %s;\n", space_of(c, base), in_memory, p, o, val);
  else if (n > 4)
    cs_fail(c, u, "so many lanes are written where they are aligned");
  else {
    str_put(&c->body, "{ ");
    for (int i = 0; i < n; i++)
      cs_put(c, "%s[%s + %d] = %s; ", p, o, i, lane_ref(c, v, i));
    str_put(&c->body, "}\n");
  }
}

/* ---- lanes */
static void render_vectorize(C *c, const UOp *u, int id) {
  int n = u->lanes;
  bool mask = cs_is_mask(c, u);
  DType d = mask ? DT_I8 : (DType)u->dtype;
  const char *t = cs_type(c, d, n);
  if (mask) c->mask_bytes[cs_place(c, u)] = 1;
  if (u->nsrc != 1 && u->nsrc != n) {
    cs_fail(c, u, "sources do not match the lanes");
    return;
  }
  if (c->lang->gnu_vec && u->nsrc == 1) {
    cs_put(c, "%s v%d = %s;\n", t, id, cs_splat(c, d, n, cs_ref(c, u->src[0])));
    return;
  }
  cs_put(c, c->lang->gnu_vec ? "%s v%d = (%s){" : "%s v%d = %s", t, id, t);
  if (!c->lang->gnu_vec) str_put(&c->body, c->lang->vec_open);
  for (int i = 0; i < n; i++)
    cs_put(c, "%s%s%s", i ? ", " : "", mask ? "-" : "", cs_ref(c, u->src[u->nsrc == 1 ? 0 : i]));
  cs_put(c, "%s;\n", c->lang->gnu_vec ? "}" : c->lang->vec_close);
}

static void render_shufflevector(C *c, const UOp *u, int id) {
  if (!c->lang->gnu_vec) {
    cs_fail(c, u, "no vectors to take lanes of");
    return;
  }
  DType d = (DType)u->dtype;
  const char *a, *b;
  if (cs_is_mask(c, u)) { /* two masks are widened to the wider one */
    int w = TG_MAX(cs_mask_size(c, u->src[0]), cs_mask_size(c, u->src[1]));
    a = cs_mask(c, u->src[0], w);
    b = cs_mask(c, u->src[1], w);
    d = cs_int_of(w);
    c->mask_bytes[cs_place(c, u)] = (uint8_t)w;
  } else {
    a = cs_ref(c, u->src[0]);
    b = cs_ref(c, u->src[1]);
  }
  cs_put(c, "%s v%d = __builtin_shufflevector(%s, %s", cs_type(c, d, u->lanes), id, a, b);
  put_lanes(c, u->lanes, u->arg.ints->v);
  str_put(&c->body, ");\n");
}

static void render_lookup(C *c, const UOp *u, int id) {
  if (!c->lang->gnu_vec) {
    cs_fail(c, u, "no vectors");
    return;
  }
  const char *name = cs_lookup(c, (DType)u->dtype, u->lanes);
  cs_put(c, "%s v%d = %s(%s, %s);\n", cs_type(c, (DType)u->dtype, u->lanes), id, name, cs_ref(c, u->src[0]),
         cs_ref(c, u->src[1]));
}

/* Reads a value of another thread of the warp, lane by lane. A narrow number needs a cast, because C promotes
 * it to int, which braces do not accept. */
static void render_shuffle(C *c, const UOp *u, int id) {
  if (!c->lang->shuffle) {
    cs_fail(c, u, "no warps here");
    return;
  }
  const char *form = dtype_size((DType)u->dtype) > 4 ? c->lang->shuffle_wide : c->lang->shuffle;
  const char *type = cs_stored((DType)u->dtype);
  cs_put(c, "%s v%d = ", cs_type(c, (DType)u->dtype, u->lanes), id);
  if (u->lanes > 1) cs_put(c, "%s%s", cs_type(c, (DType)u->dtype, u->lanes), c->lang->vec_open);
  for (int i = 0; i < u->lanes; i++) {
    if (i) str_put(&c->body, ", ");
    if (dtype_size((DType)u->dtype) < 4) cs_put(c, "(%s)", type);
    cs_put(c, form, lane_ref(c, u->src[0], i), (int)u->arg.i);
  }
  cs_put(c, "%s;\n", u->lanes > 1 ? c->lang->vec_close : "");
}

/* Writes lanes first .. first + n - 1 of a vector. */
static void render_gep(C *c, const UOp *u, int id) {
  const UOp *x = u->src[0];
  int n = u->lanes, first = (int)u->arg.i;
  if (first < 0 || first + n > x->lanes) {
    cs_fail(c, u, "lanes out of range");
    return;
  }
  bool mask = cs_is_mask(c, x);
  if (!c->lang->gnu_vec) {
    if (x->lanes > 4) cs_fail(c, u, "no thread holds these lanes");
    cs_put(c, "%s v%d = ", cs_type(c, (DType)u->dtype, n), id);
    if (n == 1)
      cs_put(c, "%s;\n", lane_ref(c, x, first));
    else {
      cs_put(c, "%s%s", cs_type(c, (DType)u->dtype, n), c->lang->vec_open);
      for (int i = 0; i < n; i++)
        cs_put(c, "%s%s", i ? ", " : "", lane_ref(c, x, first + i));
      cs_put(c, "%s;\n", c->lang->vec_close);
    }
    return;
  }
  int w = mask ? cs_mask_size(c, x) : 0;
  DType d = mask ? cs_int_of(w) : (DType)u->dtype;
  const char *r = cs_ref(c, x);
  if (n == 1 && mask)
    cs_put(c, "u8 v%d = %s[%d] != 0;\n", id, r, first);
  else if (n == 1)
    cs_put(c, "%s v%d = %s[%d];\n", cs_type(c, d, 1), id, r, first);
  else {
    if (mask) c->mask_bytes[cs_place(c, u)] = (uint8_t)w;
    cs_put(c, "%s v%d = ", cs_type(c, d, n), id);
    if (n == x->lanes) {
      cs_put(c, "%s;\n", r);
      return;
    }
    cs_put(c, "__builtin_shufflevector(%s, %s", r, r);
    int64_t lane[UINT8_MAX];
    for (int i = 0; i < n; i++)
      lane[i] = first + i;
    put_lanes(c, n, lane);
    str_put(&c->body, ");\n");
  }
}

/* An op on one lane; on a vector of GNU C, as one expression; on a short vector of a GPU, lane by lane. */
static void render_alu(C *c, const UOp *u, int id) {
  int n = u->lanes;
  if (n == 1) {
    const char *s[3] = {"", "", ""};
    for (int i = 0; i < u->nsrc && i < 3; i++)
      s[i] = cs_ref(c, u->src[i]);
    cs_put(c, "%s v%d = ", cs_stored((DType)u->dtype), id);
    cs_scalar_alu(c, u, s[0], s[1], s[2]);
  } else if (c->lang->gnu_vec) {
    /* the width of a mask is known only after its text is written, so its type is inserted in front
     * afterwards */
    size_t start = c->body.len;
    cs_vector_alu(c, u);
    const char *t =
        cs_type(c, cs_is_mask(c, u) ? cs_int_of(c->mask_bytes[cs_place(c, u)]) : (DType)u->dtype, n);
    cs_put_before(c, start, cs_text(c, "%s v%d = ", t, id));
  } else {
    cs_put(c, "%s v%d = %s%s", cs_type(c, (DType)u->dtype, n), id, cs_type(c, (DType)u->dtype, n),
           c->lang->vec_open);
    for (int i = 0; i < n; i++) {
      const char *s[3] = {"", "", ""};
      for (int j = 0; j < u->nsrc && j < 3; j++)
        s[j] = lane_ref(c, u->src[j], i);
      bool narrow = dtype_size((DType)u->dtype) < 4; /* C promotes it to int, which braces do not accept */
      if (i) str_put(&c->body, ", ");
      if (narrow) cs_put(c, "%s(", cs_stored((DType)u->dtype));
      cs_scalar_alu(c, u, s[0], s[1], s[2]);
      if (narrow) str_put(&c->body, ")");
    }
    str_put(&c->body, c->lang->vec_close);
  }
  str_put(&c->body, ";\n");
}

/* ---- kernel */
static void signature_cpu(C *c) {
  cs_fmt(&c->body, "void %s(void *const *bufs, const i64 *vars, int tid, void *scratch) {\n", c->lin->name);
  for (int i = 0; i < c->lin->n; i++) {
    const UOp *u = c->lin->at[i];
    if (u->op != OPS_PARAM) continue;
    const char *type = cs_stored((DType)u->dtype);
    int slot = (int)u->arg.param.slot;
    cs_fmt(&c->body, "  %s *p%d = (%s *)bufs[%d];\n", type, slot, type, slot);
  }
}

static int slot_of(const UOp *access) { /* the slot of the buffer that a LOAD or STORE accesses; -1: none */
  const UOp *at = uop_base(access->src[0]);
  if (at->op == OPS_INDEX) at = uop_base(at->src[0]);
  return at->op == OPS_PARAM ? (int)at->arg.param.slot : -1;
}

static bool stores_to(const UOp *u, int slot) { return u->op == OPS_STORE && slot_of(u) == slot; }

/* The place behind the last barrier and the loops around it. */
static int behind_barriers(const Linear *lin) {
  int depth = 0, behind = 0;
  bool inside = false;
  for (int i = 0; i < lin->n; i++) {
    Ops op = (Ops)lin->at[i]->op;
    depth += (op == OPS_RANGE) - (op == OPS_END);
    inside |= op == OPS_BARRIER;
    if (inside && depth <= 0) {
      behind = i + 1;
      inside = false;
    }
  }
  return behind;
}

/* Whether threads may access the same buffer on both sides of a barrier: one statement, before or among the
 * barriers, stores to it and another one reads or stores to it, too. Barriers must then include device
 * memory. */
static bool meets_in_device(C *c) {
  enum { TOUCHED = 1, STORED = 2 };

  int behind = behind_barriers(c->lin);
  uint8_t *seen = mem_alloc(c->body.mem, (size_t)c->lin->nparam + 1);
  bool meets = false;
  if (!seen) c->body.oom = true;
  for (int i = 0; i < c->lin->n && seen; i++) {
    const UOp *u = c->lin->at[i];
    int slot = u->op == OPS_LOAD || u->op == OPS_STORE ? slot_of(u) : -1;
    if (slot < 0 || slot >= c->lin->nparam) continue;
    bool stores = u->op == OPS_STORE;
    meets |= seen[slot] && (stores || (seen[slot] & STORED));
    if (i < behind) seen[slot] |= TOUCHED | (stores ? STORED : 0);
  }
  mem_free(c->body.mem, seen);
  return meets;
}

/* The declaration of a buffer; an unused slot keeps its position. Each buffer is a memory of its own, and a
 * kernel has one slot for it. Therefore pointers never alias, and a buffer that is only read is const. */
static void put_buffer(C *c, Str *to, int slot) {
  DType d = DT_U8;
  bool written = false;
  for (int i = 0; i < c->lin->n; i++) {
    const UOp *u = c->lin->at[i];
    if (u->op == OPS_PARAM && u->arg.param.slot == slot) d = (DType)u->dtype;
    written |= stores_to(u, slot);
  }
  cs_fmt(to, "%s%s%s *%sp%d", c->lang->device_space, written ? "" : "const ", cs_stored(d),
         c->lang->restrict_word, slot);
}

static int number_of_variables(const Linear *lin) {
  int n = 0;
  for (int i = 0; i < lin->n; i++)
    n += lin->at[i]->op == OPS_VAR;
  return n;
}

static bool slot_used(const Linear *lin, int slot) {
  bool used = false;
  for (int i = 0; i < lin->n && !used; i++)
    used = lin->at[i]->op == OPS_INDEX && uop_base(lin->at[i]->src[0])->op == OPS_PARAM &&
           uop_base(lin->at[i]->src[0])->arg.param.slot == slot;
  return used;
}

/* Parameters: buffers in slot order, then the variables by value, then local memory if the language has none.
 * Strict languages leave out unused parameters, because compilers warn about them. */
static void params_by_value(C *c) {
  int vars = number_of_variables(c->lin), n = 0;
  for (int slot = 0; slot < c->lin->nparam; slot++) {
    if (c->lang->strict && !slot_used(c->lin, slot)) continue;
    str_put(&c->body, n++ ? ", " : "");
    put_buffer(c, &c->body, slot);
  }
  for (int i = 0; i < vars; i++)
    cs_fmt(&c->body, "%si64 var%d", n++ ? ", " : "", i);
  if (c->lang->strict && c->lin->nthread > 1) cs_fmt(&c->body, "%si32 tid", n++ ? ", " : "");
  if (c->lang->strict && linear_local_bytes(c->lin)) cs_fmt(&c->body, ", u8 *%s", c->lang->launch_local_name);
  str_put(&c->body, ") {\n");
}

/* Parameters: buffers in slot order, then all variables as one array. */
static void params_by_place(C *c) {
  bool vars = number_of_variables(c->lin) > 0;
  for (int slot = 0; slot < c->lin->nparam; slot++) {
    put_buffer(c, &c->body, slot);
    cs_fmt(&c->body, c->lang->param_place, slot);
    str_put(&c->body, ", ");
  }
  if (vars) {
    cs_fmt(&c->body, "%si64 *vars", c->lang->value_space);
    cs_fmt(&c->body, c->lang->param_place, c->lin->nparam);
    str_put(&c->body, ", ");
  }
  cs_fmt(&c->body, "%s) {\n", c->lang->more_params);
}

/* All parameters as members of one struct. Its name depends only on its members, so kernels in the same text
 * may share it. */
static void params_in_struct(C *c) {
  Str members;
  int vars = number_of_variables(c->lin);
  str_init(&members, c->body.mem);
  for (int slot = 0; slot < c->lin->nparam; slot++) {
    put_buffer(c, &members, slot);
    str_put(&members, "; ");
  }
  if (vars) cs_fmt(&members, "i64 vars[%d]; ", vars);
  uint64_t hash = hash_bytes(1, str_text(&members), members.len);
  const char *name = cs_text(c, "args_%d_%d", (int)(hash >> 33), (int)(hash & INT32_MAX));
  cs_fmt(&c->head, "#ifndef H_%s\n#define H_%s\nstruct %s { %s};\n#endif\n", name, name, name,
         str_text(&members));
  cs_fmt(&c->body, "%s%s &args", c->lang->value_space, name);
  cs_fmt(&c->body, c->lang->param_place, 0);
  cs_fmt(&c->body, ", %s) {\n", c->lang->more_params);
  for (int slot = 0; slot < c->lin->nparam; slot++) {
    str_put(&c->body, "  ");
    put_buffer(c, &c->body, slot);
    cs_fmt(&c->body, " = args.p%d;\n", slot);
  }
  if (vars) cs_fmt(&c->body, "  %si64 *vars = args.vars;\n", c->lang->value_space);
  if (members.oom) c->body.oom = true;
  str_free(&members);
}

static void signature(C *c) {
  const Linear *lin = c->lin;
  if (c->lang->gnu_vec) {
    signature_cpu(c);
    return;
  }
  cs_fmt(&c->body, c->lang->kernel,
         TG_MAX(lin->local[0], 1) * TG_MAX(lin->local[1], 1) * TG_MAX(lin->local[2], 1));
  cs_fmt(&c->body, "%s(", lin->name);
  if (!c->lang->param_place)
    params_by_value(c);
  else if (params_in_one(lin->nparam, number_of_variables(lin), c->lang->most_params))
    params_in_struct(c);
  else
    params_by_place(c);
}

bool params_in_one(int nparam, int nvar, int most) { return nparam + (nvar > 0) > most; }

/* Declares local memory. On a GPU it is shared memory. On a CPU it is in the frame of the kernel if it is
 * small, otherwise in the thread's scratch. */
static void render_local(C *c, const UOp *u, int id, size_t *stack, size_t *scratch) {
  const char *t = cs_stored((DType)u->dtype);
  size_t size = ((size_t)u->arg.param.nelem * dtype_size((DType)u->dtype) + 63) & ~(size_t)63;
  if (c->lang->most_local && linear_local_bytes(c->lin) > c->lang->most_local) {
    if (!*scratch) {
      cs_put(c, c->lang->launch_local, c->groups ? GROUP_LINES_BYTES : MATRIX_ROW_BYTES);
      str_put(&c->body, " ");
    }
    cs_put(c, "%s *l%d = (%s *)(%s + %d);\n", t, id, t, c->lang->launch_local_name, (int)*scratch);
    if (c->groups && *scratch % GROUP_LINES_BYTES)
      cs_fail(c, u, "lines of a copy begin at no multiple of 1024");
    *scratch += (size_t)local_array_bytes(u);
    return;
  }
  if (!c->lang->gnu_vec) {
    if (c->groups)
      cs_put(c, c->lang->local_lines, GROUP_LINES_BYTES);
    else
      cs_put(c, c->lang->local_array, 4 * (int)dtype_size((DType)u->dtype));
    cs_put(c, "%s l%d[%d];\n", t, id, (int)u->arg.param.nelem);
    return;
  }
  if (*stack + size <= LOCAL_STACK_BYTES) {
    cs_put(c, "_Alignas(64) %s l%d[%d];\n", t, id, (int)u->arg.param.nelem);
    *stack += size;
  } else {
    cs_put(c, "%s *l%d = (%s *)((char *)scratch + ", t, id, t);
    str_int(&c->body, (int64_t)*scratch);
    str_put(&c->body, ");\n");
    *scratch += size;
  }
}

static const UOp *next_after(const C *c, int at) { /* the next UOp that has a statement */
  for (at++; at < c->lin->n; at++) {
    Ops op = (Ops)c->lin->at[at]->op;
    if (op != OPS_CONST && op != OPS_PARAM && op != OPS_INDEX && op != OPS_AFTER) return c->lin->at[at];
  }
  return NULL;
}

/* Whether u has no statement of its own, because its text is written where it is used, or because it opens or
 * closes nothing. */
static bool without_statement(C *c, const UOp *u) {
  switch (u->op) {
  case OPS_CONST:
  case OPS_PARAM:
  case OPS_INDEX:
  case OPS_AFTER:
  case OPS_SINK: return true;
  case OPS_LOAD: return cs_is_copied(c, u);
  case OPS_WMMA: return is_block(u) && c->lang->block;
  case OPS_STORE: return u == c->written || cs_is_group(u->src[1]);
  case OPS_VECTORIZE: return cs_is_splat_mask(c, u);
  case OPS_GEP:
    if (cs_word_of(u) || (c->lang->lane_loops && u->lanes == 1)) return true;
    if (!c->lang->gnu_vec || u->lanes != 1 || u->dtype == DT_BOOL || u->src[0]->op == OPS_CONST) return false;
    if (u->arg.i < 0 || u->arg.i >= u->src[0]->lanes) cs_fail(c, u, "lanes out of range");
    return true;
  case OPS_END: return u->src[0]->op == OPS_RANGE && u->src[0]->arg.range.type == AXIS_THREAD;
  default: return false;
  }
}

/* A register is initialised with the first value that is stored to it, if that store follows at once. */
static void render_reg(C *c, const UOp *u, int at, int id) {
  bool mask = cs_is_mask(c, u);
  if (mask) c->mask_bytes[at] = 1;
  DType d = u->dtype == DT_BOOL && u->lanes > 1 && c->lang->gnu_vec ? DT_I8 : (DType)u->dtype;
  const UOp *first = next_after(c, at);
  if (cs_has_lanes(c, u)) {
    cs_put(c, "%s acc%d[%d];\n", cs_type(c, d, 1), id, u->lanes);
    return;
  }
  if (first && first->op == OPS_STORE && uop_base(first->src[0]) == u && !mask) {
    cs_put(c, "%s acc%d = %s;\n", cs_type(c, d, u->lanes), id, cs_ref(c, first->src[1]));
    c->written = first;
  } else
    cs_put(c, "%s acc%d;\n", cs_type(c, d, u->lanes), id);
}

static void render_range(C *c, const UOp *u, const char *type) {
  const char *r = cs_ref(c, u);
  if (u->arg.range.type == AXIS_THREAD) {
    cs_put(c, "%s %s = (%s)tid;\n", type, r, type);
    return;
  }
  cs_put(c, "for (%s %s = 0; %s < %s; %s++) {\n", type, r, r, cs_ref(c, u->src[0]), r);
  c->depth++;
}

static void render_special(C *c, const UOp *u, const char *type, int id) {
  static const char *const axis[] = {"x", "y", "z"};
  if (c->lang->gnu_vec || u->arg.special.dim < 0 || u->arg.special.dim > 2) {
    cs_fail(c, u, "no grid here");
    return;
  }
  bool local = u->arg.special.local;
  const char *from = local ? c->lang->thread_index : c->lang->block_index;
  cs_put(c, "%s v%d = (%s)%s.%s;   /* < %s */\n", type, id, type, from, axis[u->arg.special.dim],
         cs_ref(c, u->src[0]));
}

/* All threads meet, each after the copies that it started. */
static void render_barrier(C *c, const UOp *u) {
  const char *barrier = c->meets_in_device ? c->lang->barrier_device : c->lang->barrier;
  if (!barrier) {
    cs_fail(c, u, "no barriers here");
    return;
  }
  if (c->copies && u->nsrc)
    cs_put(c, c->lang->copies_wait_some, (int)u->src[0]->arg.v.i), str_put(&c->body, "; ");
  else if (c->copies)
    cs_put(c, "%s; ", c->lang->copies_wait);
  if (c->groups) str_put(&c->body, "tg_group_fence(); ");
  cs_put(c, "%s;\n", barrier);
}

static void render_prefetch(C *c, const UOp *u) {
  const UOp *x = uop_base(u->src[0]);
  if (c->lang->prefetch && x->op == OPS_INDEX && x->nsrc == 2 && !x->arg.i)
    cs_put(c, "%s(%s, %s);\n", c->lang->prefetch, cs_ref(c, uop_base(x->src[0])), cs_ref(c, x->src[1]));
  else
    cs_fail(c, u, "no line of cache can be asked for here");
}

/* The rows are read here, so nothing may have changed them since their LOAD. */
static void render_fragment(C *c, const UOp *u, int at, int id) {
  const UOp *load = u->src[0], *x = load->op == OPS_LOAD ? uop_base(load->src[0]) : NULL;
  bool ok =
      c->lang->rows && x && x->op == OPS_INDEX && !x->arg.i && uop_base(x->src[0])->op == OPS_DEFINE_LOCAL;
  for (int i = ok ? cs_place(c, load) : at; ok && i < at; i++) {
    Ops op = (Ops)c->lin->at[i]->op;
    ok = op != OPS_BARRIER && op != OPS_STORE && op != OPS_RANGE && op != OPS_END;
  }
  if (ok)
    c->lang->rows(c, u, id);
  else
    cs_fail(c, u, "no rows of shared memory, read where they are used");
}

/* Writes the statement of one UOp and numbers its name. */
static void render_one(C *c, const UOp *u, int at, size_t *stack, size_t *scratch) {
  const char *type = cs_stored((DType)u->dtype);
  /* allowed are 1, 2, 4 .. 64 lanes; 2 or 4 on a GPU, except for values that no thread holds */
  bool whole = (u->op == OPS_INDEX || u->op == OPS_LOAD) && !c->lang->gnu_vec &&
               u->lanes * dtype_size((DType)u->dtype) == MATRIX_ROW_BYTES;
  bool held = u->op != OPS_FRAGMENT && !cs_is_copied(c, u) && !whole;
  if (held && ((u->lanes & (u->lanes - 1)) || u->lanes > (c->lang->gnu_vec ? 64 : 4))) {
    cs_fail(c, u, "this number of lanes does not exist");
    return;
  }
  if (HAS_GRIDS && c->groups) cs_group_waits(c, u, at);
  if (without_statement(c, u)) return;
  if (cs_is_group(u)) {
    cs_group(c, u, at);
    return;
  }
  bool closes = u->op == OPS_END || u->op == OPS_ENDIF;
  if (closes && c->depth <= 1) {
    cs_fail(c, u, "closes nothing");
    return;
  }
  c->depth -= closes;
  if (cs_has_lanes(c, u) && u->op != OPS_DEFINE_REG) {
    cs_lanes_value(c, u, at);
    return;
  }
  int id = c->number[at] = u->op == OPS_DEFINE_REG                     ? c->nreg++
                           : u->op == OPS_DEFINE_LOCAL                 ? c->nlocal++
                           : u->dtype != DT_VOID && u->op != OPS_RANGE ? c->nval++
                                                                       : 0;
  cs_line(c);
  switch (u->op) {
  case OPS_VAR:
    cs_put(c, c->lang->gnu_vec || c->lang->param_place ? "%s v%d = (%s)vars[%d];\n" : "%s v%d = (%s)var%d;\n",
           type, id, type, c->nvar++);
    break;
  case OPS_DEFINE_REG: render_reg(c, u, at, id); break;
  case OPS_DEFINE_LOCAL: render_local(c, u, id, stack, scratch); break;
  case OPS_RANGE: render_range(c, u, type); break;
  case OPS_IF:
    if (cs_has_lanes(c, u->src[0]))
      cs_lanes_if(c, u);
    else
      cs_put(c, "if (%s) {\n", cs_any(c, u->src[0]));
    c->depth++;
    break;
  case OPS_END:
  case OPS_ENDIF: cs_put(c, "}\n"); break;
  case OPS_LOAD: render_load(c, u, id); break;
  case OPS_STORE:
    if (is_block(u->src[1]))
      c->lang->block(c, u);
    else if (cs_is_copied(c, u->src[1]))
      cs_copy(c, u);
    else if (cs_has_lanes(c, u->src[1]))
      cs_lanes_store(c, u);
    else
      render_store(c, u);
    break;
  case OPS_VECTORIZE: render_vectorize(c, u, id); break;
  case OPS_GEP: render_gep(c, u, id); break;
  case OPS_SHUFFLEVECTOR: render_shufflevector(c, u, id); break;
  case OPS_LOOKUP: render_lookup(c, u, id); break;
  case OPS_SHUFFLE: render_shuffle(c, u, id); break;
  case OPS_FRAGMENT: render_fragment(c, u, at, id); break;
  case OPS_WMMA:
    if (c->lang->matrix)
      c->lang->matrix(c, u, id);
    else
      cs_fail(c, u, "no matrix units here");
    break;
  case OPS_BARRIER: render_barrier(c, u); break;
  case OPS_PREFETCH: render_prefetch(c, u); break;
  case OPS_SPECIAL: render_special(c, u, type, id); break;
  default:
    if (op_is_alu((Ops)u->op))
      render_alu(c, u, id);
    else
      cs_fail(c, u, "no linear program may contain it");
  }
}

static bool uses_tiles(const Linear *lin) {
  for (int i = 0; i < lin->n; i++)
    if (is_block(lin->at[i]) && matrix_shapes[lin->at[i]->arg.i].maker == MATRIX_AMX) return true;
  return false;
}

bool cstyle_render(Str *out, const Linear *lin, TgError *err, const CLang *lang) {
  TgMem *mem = out->mem;
  C *c = mem_alloc(mem, sizeof *c);
  if (!c) return error_set(err, TG_ERR_NOMEM, "render %s: out of memory", lang->name), false;
  c->lang = lang;
  c->lin = lin;
  c->err = err;
  c->depth = 1;
  str_init(&c->head, mem), str_init(&c->body, mem), str_init(&c->texts, mem), map_init(&c->helpers, mem);
  for (int i = 0; i < lin->n; i++)
    c->npos = TG_MAX(c->npos, (size_t)lin->at[i]->id + 1);
  c->pos = mem_alloc(mem, c->npos * sizeof *c->pos);
  c->mask_bytes = mem_alloc(mem, (size_t)lin->n + 1);
  c->number = mem_alloc(mem, ((size_t)lin->n + 1) * sizeof *c->number);
  bool oom = !c->mask_bytes || !c->number || !c->pos || !cs_find_copies(c, mem) || !cs_find_lanes(c, mem);
  signature(c);
  c->meets_in_device = meets_in_device(c);
  size_t stack = 0, scratch = 0;
  bool tiles = uses_tiles(lin);
  if (tiles && lang->tiles_begin) cs_put(c, "  %s\n", lang->tiles_begin);
  for (int i = 0; i < lin->n && !oom && !c->failed; i++) {
    c->pos[lin->at[i]->id] = i + 1;
    render_one(c, lin->at[i], i, &stack, &scratch);
  }
  if (!oom && !c->failed && c->depth != 1) {
    error_set(err, TG_ERR_INTERNAL, "render %s: kernel %s: a loop is not closed", lang->name, lin->name);
    c->failed = true;
  }
  if (tiles && lang->tiles_end) cs_put(c, "  %s\n", lang->tiles_end);
  str_put(&c->body, "}\n");
  str_putn(out, str_text(&c->head), c->head.len);
  str_putn(out, str_text(&c->body), c->body.len);
  oom = oom || out->oom || c->head.oom || c->body.oom || c->texts.oom;
  bool ok = !oom && !c->failed;
  /* an earlier error is kept */
  if (!ok) error_set(err, TG_ERR_NOMEM, "render %s: kernel %s: out of memory", lang->name, lin->name);
  str_free(&c->head), str_free(&c->body), mem_free(mem, c->pos), map_free(&c->helpers);
  mem_free(mem, c->mask_bytes), mem_free(mem, c->number), mem_free(mem, c->copied), mem_free(mem, c->within);
  mem_free(mem, c->text_at), str_free(&c->texts), mem_free(mem, c);
  return ok;
}
