/* emulate_text.c: kernel text -> the C++ that is compiled for this CPU. What the emulator offers and the
 * dialect's definitions come first, then the text itself, unchanged. Behind each kernel there is an entry
 * that takes the arguments by address. */
#include "emu/emulate_private.h"
#include <ctype.h>
#include <string.h>

const char emu_prelude[] =
    "typedef unsigned int emu_u32;\ntypedef unsigned long long emu_u64;\n"
    "struct EmuIndex { emu_u32 x, y, z; };\n"
    "extern \"C\" {\n"
    "EmuIndex emu_thread_index(); EmuIndex emu_block_index(); EmuIndex emu_block_size(); EmuIndex "
    "emu_grid_size();\n"
    "void emu_barrier(emu_u32 id, emu_u32 line, emu_u32 orders);\n"
    "void emu_warp_sync(emu_u32 id, emu_u32 line, emu_u32 mask);\n"
    "emu_u32 emu_warp_ballot(emu_u32 id, emu_u32 line, emu_u32 mask, int value);\n"
    "emu_u64 emu_warp_shuffle(emu_u32 id, emu_u32 line, int op, emu_u32 mask, emu_u64 value, int arg, int "
    "width);\n"
    "void emu_warp_mma(emu_u32 id, emu_u32 line, int kind, void *d, const void *a, const void *b, const void "
    "*c);\n"
    "void emu_warp_rows(emu_u32 id, emu_u32 line, int kind, void *to, const void *row);\n"
    "void emu_atomic(const volatile void *p, emu_u64 nbytes);\n"
    "void emu_copy_async(void *to, const void *from, emu_u64 nbytes);\n"
    "emu_u64 emu_group_place(const void *p, emu_u64 apart);\n"
    "void emu_group_step(emu_u32 id, emu_u32 line, int kind, emu_u64 a, emu_u64 b, emu_u32 words, float "
    "**sum);\n"
    "void emu_group_begin(); void emu_group_commit(); void emu_group_wait(int left); void "
    "emu_group_fence();\n"
    "void emu_copy_commit(); void emu_copy_wait(int n); void emu_copy_wait_all();\n"
    "}\n"
    /* the place of a call, for calls at which threads meet */
    "#define EMU_HERE __COUNTER__, __LINE__\n"
    "#define EMU_TEXT_(x) #x\n#define EMU_TEXT(x) EMU_TEXT_(x)\n"
    /* `used`: the compiler must assume that other threads access the array */
    "#define EMU_SHARED_ARRAY static __attribute__((used, section(\".bss.emu.\" EMU_TEXT(__COUNTER__))))\n"
    "#define EMU_DYNAMIC_ARRAY extern __attribute__((visibility(\"hidden\")))\n"
    "#define EMU_UNSEEN __attribute__((no_sanitize(\"thread\"))) "
    "__attribute__((no_sanitize(\"undefined\")))\n"
    "template <typename T> static inline T emu_shuffled(emu_u32 id, emu_u32 line, int op, emu_u32 mask, T x, "
    "int arg, int width = 32) {\n"
    "  emu_u64 bits = 0;\n  __builtin_memcpy(&bits, &x, sizeof x);\n"
    "  bits = emu_warp_shuffle(id, line, op, mask, bits, arg, width);\n"
    "  __builtin_memcpy(&x, &bits, sizeof x);\n  return x;\n}\n"
    "template <emu_u32... I> struct EmuList {};\n"
    "template <emu_u32 N, emu_u32... I> struct EmuCount : EmuCount<N - 1, N - 1, I...> {};\n"
    "template <emu_u32... I> struct EmuCount<0, I...> { typedef EmuList<I...> list; };\n"
    "template <int N> struct EmuInfo { int nparam, most, nbytes[N + 1]; };\n"
    "template <typename F> struct EmuCall;\n"
    "template <typename... A> struct EmuCall<void (*)(A...)> {\n"
    "  static constexpr int nparam = sizeof...(A);\n"
    "  static constexpr EmuInfo<nparam> info(int most) { return {nparam, most, {(int)sizeof(A)..., 0}}; }\n"
    "  template <void (*F)(A...), emu_u32... I> EMU_UNSEEN static void with(void *const *p, EmuList<I...>) "
    "{\n"
    "    F(*(A *)p[I]...);\n  }\n"
    "  template <void (*F)(A...)> EMU_UNSEEN static void run(void *const *p) {\n"
    "    with<F>(p, typename EmuCount<nparam>::list());\n  }\n"
    "};\n"
    /* through a second macro, so that a name that is a macro itself is replaced first */
    "#define EMU_KERNEL(NAME, MOST) EMU_KERNEL_(NAME, MOST)\n"
    "#define EMU_KERNEL_(NAME, MOST) \\\n"
    "  extern \"C\" __attribute__((used)) EMU_UNSEEN void emu_entry_##NAME(void *const *p) { "
    "EmuCall<decltype(&NAME)>::run<&NAME>(p); } \\\n"
    "  extern \"C\" { extern __attribute__((used)) const EmuInfo<EmuCall<decltype(&NAME)>::nparam> "
    "emu_info_##NAME; \\\n"
    "  const EmuInfo<EmuCall<decltype(&NAME)>::nparam> emu_info_##NAME = "
    "EmuCall<decltype(&NAME)>::info(MOST); }\n"
    /* Parameters that declare where they come from. Each has a type, EmuBuffer or one of the dialect. Every
     * argument is the address of memory; the size is that of what a reference refers to. */
    "template <typename T> struct EmuBound;\n"
    "template <typename T> struct EmuBound<T *> {\n"
    "  static constexpr int nbytes = sizeof(T *);\n"
    "  EMU_UNSEEN static T *get(void *p) { return (T *)p; }\n};\n"
    "template <typename T> struct EmuBound<T &> {\n"
    "  static constexpr int nbytes = sizeof(T) > sizeof(T *) ? sizeof(T) : sizeof(T *);\n"
    "  EMU_UNSEEN static T &get(void *p) { return *(T *)p; }\n};\n"
    "template <int N> struct EmuBuffer {\n"
    "  static constexpr int index = N;\n"
    "  template <typename A> static constexpr int nbytes() { return EmuBound<A>::nbytes; }\n"
    "  template <typename A> EMU_UNSEEN static A get(void *const *p) {\n"
    "    return EmuBound<A>::get(*(void *const *)p[N]);\n  }\n};\n"
    "#define EMU_PLACE(NAME, CALL) struct EmuPlace_##NAME { static constexpr int index = -1; \\\n"
    "  template <typename A> static constexpr int nbytes() { return 0; } \\\n"
    "  template <typename A> EMU_UNSEEN static A get(void *const *) { EmuIndex i = CALL; A a; "
    "a.x = i.x, a.y = i.y, a.z = i.z; return a; } };\n"
    "template <typename F> struct EmuBoundCall;\n"
    "template <typename... A> struct EmuBoundCall<void (*)(A...)> {\n"
    "  template <typename... D> struct With {\n"
    "    static constexpr int count() { int n = 0, at[] = {D::index..., -1}; for (int i : at) if (i >= n) n "
    "= "
    "i + 1; return n; }\n"
    "    static constexpr int nparam = count();\n"
    "    static constexpr EmuInfo<nparam> info(int most) {\n"
    "      EmuInfo<nparam> out = {nparam, most, {0}};\n"
    "      int at[] = {D::index..., -1}, size[] = {D::template nbytes<A>()..., 0};\n"
    "      for (int i = 0; i < (int)sizeof...(D); i++) if (at[i] >= 0) out.nbytes[at[i]] = size[i];\n"
    "      return out;\n    }\n"
    "    template <void (*F)(A...)> EMU_UNSEEN static void run(void *const *p) { F(D::template "
    "get<A>(p)...); }\n"
    "  };\n};\n"
    "#define EMU_BOUND_KERNEL(NAME, MOST, ...) EMU_BOUND_KERNEL_(NAME, MOST, __VA_ARGS__)\n"
    "#define EMU_BOUND_KERNEL_(NAME, MOST, ...) \\\n"
    "  typedef EmuBoundCall<decltype(&NAME)>::With<__VA_ARGS__> EmuCallOf_##NAME; \\\n"
    "  extern \"C\" __attribute__((used)) EMU_UNSEEN void emu_entry_##NAME(void *const *p) { "
    "EmuCallOf_##NAME::run<&NAME>(p); } \\\n"
    "  extern \"C\" { extern __attribute__((used)) const EmuInfo<EmuCallOf_##NAME::nparam> emu_info_##NAME; "
    "\\\n"
    "  const EmuInfo<EmuCallOf_##NAME::nparam> emu_info_##NAME = EmuCallOf_##NAME::info(MOST); }\n"
    /* Short vectors, which are copied in words of A2 bytes, or of A4 bytes but at most 16. The copy is not
     * trivial, so that the compiler checks the alignment of what is copied. */
    "template <typename T, int A> struct EmuWord { typedef T type __attribute__((vector_size(A), "
    "may_alias)); };\n"
    "#define EMU_NOW __attribute__((always_inline)) inline\n"
    "#define EMU_COPY(T, A, S) \\\n"
    "  EMU_NOW void emu_copy(const S &o) { for (unsigned i = 0; i < sizeof(S) / A; i++) \\\n"
    "    ((typename EmuWord<T, A>::type *)this)[i] = ((const typename EmuWord<T, A>::type *)&o)[i]; } \\\n"
    "  S() = default; EMU_NOW S(const S &o) { emu_copy(o); } \\\n"
    "  EMU_NOW S &operator=(const S &o) { emu_copy(o); return *this; }\n"
    "#define EMU_VECTOR(T, N, A2, A4) \\\n"
    "  struct __attribute__((aligned(A2))) N##2 { T x, y; EMU_COPY(T, A2, N##2) \\\n"
    "    EMU_NOW N##2(T x, T y) : x(x), y(y) {} }; \\\n"
    "  struct __attribute__((aligned(A4))) N##4 { T x, y, z, w; EMU_COPY(T, (A4 > 16 ? 16 : A4), N##4) "
    "\\\n"
    "    EMU_NOW N##4(T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {} };\n"
    "template <typename T, typename F> EMU_NOW T emu_bits(F x) { T y; __builtin_memcpy((void *)&y, &x, "
    "sizeof y); return y; }\n"
    "#define EMU_MATH(F) extern \"C\" float F##f(float);\n"
    "EMU_MATH(sqrt) EMU_MATH(exp2) EMU_MATH(log2) EMU_MATH(exp) EMU_MATH(log) EMU_MATH(sin) EMU_MATH(cos)\n"
    "EMU_MATH(tan) EMU_MATH(tanh) EMU_MATH(floor) EMU_MATH(ceil) EMU_MATH(trunc) EMU_MATH(rint) "
    "EMU_MATH(fabs)\n"
    "extern \"C\" float fmaf(float, float, float); extern \"C\" float powf(float, float);\n"
    "extern \"C\" float fmaxf(float, float); extern \"C\" float fminf(float, float);\n";

/* ---- scanning */
static bool starts_name(char c) { return isalpha((unsigned char)c) || c == '_'; }

static bool in_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Returns the end of a comment, string or preprocessor line that begins at p, or p if none does. */
static const char *skip_inert(const char *p, bool line_start) {
  if (*p == '#' && line_start) {
    while (*p && *p != '\n')
      p += *p == '\\' && p[1] ? 2 : 1;
    return p;
  }
  if (p[0] == '/' && p[1] == '/') return p + strcspn(p, "\n");
  if (p[0] == '/' && p[1] == '*') {
    const char *end = strstr(p + 2, "*/");
    return end ? end + 2 : p + strlen(p);
  }
  if (*p != '"' && *p != '\'') return p;
  char quote = *p++;
  while (*p && *p != quote && *p != '\n')
    p += *p == '\\' && p[1] ? 2 : 1;
  return *p ? p + 1 : p;
}

static const char *skip_space(const char *p) {
  for (;;) {
    const char *q = p + strspn(p, " \t\r\n");
    if (q[0] == '/' && (q[1] == '/' || q[1] == '*')) q = skip_inert(q, false);
    if (q == p) return p;
    p = q;
  }
}

static size_t name_length(const char *p) {
  size_t n = 0;
  while (in_name(p[n]))
    n++;
  return n;
}

/* Returns the length of the words at p, with any space between them; 0: p does not begin with these words. */
static size_t words_length(const char *p, const char *words) {
  const char *at = p;
  while (words && *words) {
    size_t n = name_length(words);
    if (name_length(at) != n || memcmp(at, words, n)) return 0;
    at += n;
    words += n;
    words += strspn(words, " ");
    if (*words) at = skip_space(at);
  }
  return (size_t)(at - p);
}

/* Returns the end of the pair of parentheses that begins at p. */
static const char *skip_parens(const char *p) {
  int depth = 0;
  while (*p) {
    const char *q = skip_inert(p, false);
    if (q != p) {
      p = q;
      continue;
    }
    depth += (*p == '(') - (*p == ')');
    p++;
    if (!depth) break;
  }
  return p;
}

/* A kernel whose head has been read: its name, the text of its bounds, and the number of braces that are open
 * around it. */
typedef struct Head {
  const char *name, *bounds, *params; /* params: at the parenthesis that opens them */
  size_t length, bounds_length;
  int depth;
  bool open; /* its body has begun */
} Head;

/* Reads a kernel's head from behind the dialect's word up to the parameters. Returns no name if there is
 * none. */
static Head kernel_head(const EmuDialect *d, const char *p, int depth) {
  Head h = {.bounds = "0", .bounds_length = 1, .depth = depth};
  for (p = skip_space(p); *p && *p != '{' && *p != ';'; p = skip_space(p)) {
    if (*p == '(' && h.name) return h.params = p, h;
    if (!starts_name(*p)) {
      p = *p == '(' ? skip_parens(p) : p + 1;
      continue;
    }
    size_t n = name_length(p);
    bool is_bounds = d->bounds_word && words_length(p, d->bounds_word);
    bool is_attribute = words_length(p, "__attribute__") || words_length(p, "__align__");
    if (!is_bounds && !is_attribute) {
      h.name = p;
      h.length = n;
      p += n;
      continue;
    }
    const char *open = skip_space(p + n), *end = *open == '(' ? skip_parens(open) : open;
    if (is_bounds && end - open > 2) {
      h.bounds = open + 1;
      h.bounds_length = strcspn(h.bounds, ",)");
    }
    p = end;
  }
  return (Head){0};
}

/* Appends the type for the place that a parameter declares in [[ ]]: one of the prelude or of the dialect. */
static void put_source(Str *body, const char *param, const char *end) {
  const char *at = param;
  while (at + 1 < end && (at[0] != '[' || at[1] != '['))
    at++;
  at = skip_space(at + 1 < end ? at + 2 : end);
  size_t n = at < end ? name_length(at) : 0;
  str_put(body, ", ");
  if (n && words_length(at, "buffer")) {
    const char *open = skip_space(at + n);
    str_put(body, "EmuBuffer<");
    str_putn(body, open, (size_t)(skip_parens(open) - open));
    str_put(body, ">");
  } else {
    str_put(body, "EmuPlace_");
    str_putn(body, at, n);
  }
}

static void put_sources(Str *body, const char *params) {
  const char *end = skip_parens(params) - 1, *param = skip_space(params + 1);
  int depth = 0;
  for (const char *p = param; p <= end && param < end; p++) {
    depth += (*p == '(' || *p == '[' || *p == '<') - (*p == ')' || *p == ']' || *p == '>');
    if (p < end && (*p != ',' || depth)) continue;
    put_source(body, param, p);
    param = p + 1;
  }
}

/* Appends a kernel's entry. It is on the last line of the kernel's body, so that lines keep their numbers. */
static void put_entry(Str *body, const EmuDialect *d, const Head *h) {
  str_put(body, d->has_attributes ? " EMU_BOUND_KERNEL(" : " EMU_KERNEL(");
  str_putn(body, h->name, h->length);
  str_put(body, ", (");
  str_putn(body, h->bounds, h->bounds_length);
  str_put(body, ")");
  if (d->has_attributes) put_sources(body, h->params);
  str_put(body, ")");
}

/* Whether the text behind the word for shared memory declares an array. Otherwise the word is part of a
 * pointer's type. */
static bool declares_array(const char *p) {
  p = skip_space(p);
  while (*p && (in_name(*p) || *p == ':'))
    p = skip_space(p + 1);
  return *p == '[' || *p == ';';
}

/* Reads the name of an array whose declaration continues at p, and defines it as a macro for the dynamic
 * array. */
static void dynamic_array(Str *names, const char *p) {
  const char *name = NULL;
  size_t length = 0;
  for (p = skip_space(p); *p && *p != '[' && *p != ';'; p = skip_space(p)) {
    if (starts_name(*p)) {
      name = p;
      length = name_length(p);
      p += length;
    } else
      p = *p == '(' ? skip_parens(p) : p + 1;
  }
  if (!name) return;
  str_put(names, "#define ");
  str_putn(names, name, length);
  str_put(names, " " EMU_DYNAMIC);
  str_putn(names, name, length);
  str_put(names, "\n");
}

typedef struct Scan {
  const EmuDialect *dialect;
  Str body, names;
  Head head; /* no name: outside of kernels */
  int depth;
} Scan;

/* Updates the state of the scan after a token was copied. */
static void after_token(Scan *s, const char *token, const char *end) {
  s->depth += (*token == '{') - (*token == '}');
  if (words_length(token, s->dialect->kernel_word)) s->head = kernel_head(s->dialect, end, s->depth);
  if (!s->head.name) return;
  if (*token == '{') s->head.open = true;
  bool over = *token == '}' && s->depth == s->head.depth;
  if (over && s->head.open) put_entry(&s->body, s->dialect, &s->head);
  /* the kernel has ended, or was only declared */
  if (over || (*token == ';' && !s->head.open)) s->head.name = NULL;
}

/* Whether a line includes the header that the dialect's prelude replaces. */
static bool is_header(const EmuDialect *d, const char *p, const char *end) {
  if (!d->header || *p != '#') return false;
  const char *open = memchr(p, '<', (size_t)(end - p));
  size_t n = strlen(d->header);
  return open && (size_t)(end - open) > n + 1 && !memcmp(open + 1, d->header, n) && open[n + 1] == '>';
}

static void scan(Scan *s, const char *text) {
  bool line_start = true;
  for (const char *p = text; *p;) {
    const char *q = skip_inert(p, line_start);
    bool inert = q != p;
    size_t n = inert || !starts_name(*p) ? 0 : words_length(p, s->dialect->dynamic_words);
    if (n) {
      str_put(&s->body, "EMU_DYNAMIC_ARRAY");
      for (size_t i = 0; i < n; i++)
        if (p[i] == '\n') str_put(&s->body, "\n");
      p += n;
      dynamic_array(&s->names, p);
      continue;
    }
    if (!inert) q = p + (in_name(*p) ? name_length(p) : 1);
    if (inert && is_header(s->dialect, p, q)) {
      p = q;
      continue;
    }
    if (!inert && words_length(p, s->dialect->array_word)) {
      str_put(&s->body, declares_array(q) ? "EMU_SHARED_ARRAY" : "");
      p = q;
      continue;
    }
    str_putn(&s->body, p, (size_t)(q - p));
    if (!inert) after_token(s, p, q);
    line_start = q[-1] == '\n' || (line_start && (*p == ' ' || *p == '\t'));
    p = q;
  }
}

bool emu_text(Str *out, const EmuDialect *d, const char *text) {
  Scan s = {.dialect = d};
  str_init(&s.body, out->mem), str_init(&s.names, out->mem);
  scan(&s, text);
  str_put(out, emu_prelude);
  str_put(out, d->prelude);
  str_put(out, str_text(&s.names));
  str_printf(out, "#line 1 \"%s kernel\"\n", d->name);
  str_putn(out, str_text(&s.body), s.body.len);
  str_put(out, "\n");
  bool ok = !out->oom && !s.body.oom && !s.names.oom;
  str_free(&s.body), str_free(&s.names);
  return ok;
}
