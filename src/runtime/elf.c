/* elf.c: an ELF64 relocatable object of this processor -> executable memory. The memory is written,
 * relocated, then made read + execute; it is never writable and executable at once. Every offset in the
 * object is checked against its size, so a damaged object is an error and nothing worse. On request variables
 * are loaded too, on pages of their own behind the code. */
#define _GNU_SOURCE
#include "runtime/cpu.h"
#include "runtime/elf_private.h"
#include "base/os.h"
#include <math.h>
#include <string.h>
#include <unistd.h>

/* The functions that compilers call on their own. Each has a stub of 16 bytes in the image: a jump, then the
 * address that it jumps to. */
static void *libc_memset(void *p, int c, size_t n) { return memset(p, c, n); }

static void *libc_memcpy(void *p, const void *q, size_t n) { return memcpy(p, q, n); }

static void *libc_memmove(void *p, const void *q, size_t n) { return memmove(p, q, n); }

typedef void (*AnyFn)(void);

static const ElfExtern externs[] = {{"memset", (AnyFn)libc_memset},
                                    {"memcpy", (AnyFn)libc_memcpy},
                                    {"memmove", (AnyFn)libc_memmove},
                                    {"fmaf", (AnyFn)fmaf},
                                    {"fma", (AnyFn)fma},
                                    {"sqrtf", (AnyFn)sqrtf},
                                    {"sqrt", (AnyFn)sqrt},
                                    {"truncf", (AnyFn)truncf},
                                    {"trunc", (AnyFn)trunc},
                                    {"fmaxf", (AnyFn)fmaxf},
                                    {"fmax", (AnyFn)fmax},
                                    {"fminf", (AnyFn)fminf},
                                    {"fmin", (AnyFn)fmin}};

enum { STUB_BYTES = 16, STUB_ADDR = 8, MAX_SECTIONS = 4096 };

/* Returns the machine of the processor that this runs on. NULL: its objects cannot be loaded here. */
static const ElfMachine *machine_here(void) {
#if defined __x86_64__
  return &elf_x86_64;
#elif defined __aarch64__ && !defined __MACH__ /* macOS uses Mach-O objects */
  return &elf_arm64;
#else
  return NULL;
#endif
}

bool elf_is_known(void) { return machine_here() != NULL; }

typedef struct Elf {
  const ElfMachine *machine;
  const uint8_t *at;
  size_t nbytes;
  Elf64_Ehdr h;
  uint64_t symtab, nsym, strtab, str_bytes;
  const ElfWants *wants;
} Elf;

/* The places of the image's parts: first the stubs, code and constants; from `data` on, which is a multiple
 * of the page size, the variables; from `room` on the caller's room. */
typedef struct Layout {
  uint64_t *off; /* offset of each section; UINT64_MAX: not loaded */
  uint64_t data, room, total;
} Layout;

static const ElfWants no_wants;

static size_t nextern(const Elf *e) { return e->wants->nextern + TG_COUNT(externs); }

static const ElfExtern *extern_at(const Elf *e, size_t i) { /* the caller's functions come first */
  return i < e->wants->nextern ? &e->wants->externs[i] : &externs[i - e->wants->nextern];
}

static bool within(const Elf *e, uint64_t off, uint64_t n) {
  return off <= e->nbytes && n <= e->nbytes - off;
}

static bool section(const Elf *e, unsigned i, Elf64_Shdr *s) {
  if (i >= e->h.e_shnum) return false;
  memcpy(s, e->at + e->h.e_shoff + (size_t)i * sizeof *s, sizeof *s);
  return s->sh_type == SHT_NOBITS || within(e, s->sh_offset, s->sh_size);
}

static bool symbol(const Elf *e, uint64_t i, Elf64_Sym *s) {
  if (i >= e->nsym) return false;
  memcpy(s, e->at + e->symtab + i * sizeof *s, sizeof *s);
  return true;
}

static bool str_is(const Elf *e, uint64_t off, const char *text) {
  size_t n = strlen(text) + 1;
  return off < e->str_bytes && n <= e->str_bytes - off && !memcmp(e->at + e->strtab + off, text, n);
}

/* Returns the text of a name, or "" if the name has no end. */
static const char *str_at(const Elf *e, uint64_t off) {
  const char *text = (const char *)e->at + e->strtab + off;
  return off < e->str_bytes && memchr(text, 0, e->str_bytes - off) ? text : "";
}

/* Opens an object. Returns NULL, or what is wrong with it. */
static const char *elf_open(Elf *e, const void *obj, size_t nbytes, const ElfWants *wants) {
  *e = (Elf){.machine = machine_here(), .at = obj, .nbytes = nbytes, .wants = wants ? wants : &no_wants};
  if (!e->machine) return "no relocations are known for this processor";
  if (nbytes < sizeof e->h) return "shorter than its header";
  memcpy(&e->h, obj, sizeof e->h);
  if (memcmp(e->h.e_ident, ELF_MAGIC, 4) || e->h.e_ident[EI_CLASS] != ELFCLASS64 ||
      e->h.e_ident[EI_DATA] != ELFDATA2LSB)
    return "not ELF64";
  if (e->h.e_type != ET_REL || e->h.e_machine != e->machine->number)
    return "not a relocatable object of this processor";
  if (e->h.e_shentsize != sizeof(Elf64_Shdr) || !e->h.e_shnum || e->h.e_shnum > MAX_SECTIONS)
    return "strange section table";
  if (!within(e, e->h.e_shoff, (uint64_t)e->h.e_shnum * sizeof(Elf64_Shdr)))
    return "section table past the end";
  Elf64_Shdr s, t;
  for (unsigned i = 0; i < e->h.e_shnum; i++) {
    if (!section(e, i, &s)) return "section past the end";
    if (s.sh_type != SHT_SYMTAB) continue;
    if (s.sh_entsize != sizeof(Elf64_Sym) || !section(e, s.sh_link, &t) || t.sh_type != SHT_STRTAB)
      return "strange symbol table";
    e->symtab = s.sh_offset;
    e->nsym = s.sh_size / sizeof(Elf64_Sym);
    e->strtab = t.sh_offset;
    e->str_bytes = t.sh_size;
  }
  return e->nsym ? NULL : "no symbols";
}

/* Whether a section is in the image. */
static bool is_loaded(const Elf64_Shdr *s) {
  if (!(s->sh_flags & SHF_ALLOC) || !s->sh_size) return false;
  return s->sh_type == SHT_PROGBITS || s->sh_type == SHT_NOBITS;
}

static bool is_variable(const Elf64_Shdr *s) {
  return (s->sh_flags & SHF_WRITE) && !(s->sh_flags & SHF_EXECINSTR);
}

enum { IMAGE_MOST = 1 << 30 };

/* Places the sections with variables, or all other sections. */
static const char *layout_part(const Elf *e, bool variables, uint64_t apart, Layout *l) {
  Elf64_Shdr s;
  for (unsigned i = 0; i < e->h.e_shnum; i++) {
    if (!section(e, i, &s)) return "section past the end";
    if (!is_loaded(&s) || (e->wants->variables && is_variable(&s)) != variables) continue;
    if (is_variable(&s) && s.sh_type == SHT_NOBITS && !variables) return "has variables";
    uint64_t align = s.sh_addralign ? s.sh_addralign : 1;
    if ((align & (align - 1)) || align > 4096 || s.sh_size > IMAGE_MOST) return "strange section";
    l->off[i] = (l->total + apart + align - 1) & ~(align - 1);
    l->total = l->off[i] + s.sh_size;
    if (l->total > IMAGE_MOST) return "too large";
  }
  return NULL;
}

static uint64_t whole_pages(uint64_t nbytes) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  return (nbytes + page - 1) & ~(page - 1);
}

/* Sets the place of each loaded section in the image. The same object and options always give the same
 * layout, so no table of symbols has to be kept. */
static const char *layout(const Elf *e, Layout *l) {
  for (unsigned i = 0; i < e->h.e_shnum; i++)
    l->off[i] = UINT64_MAX;
  l->total = nextern(e) * STUB_BYTES;
  const char *bad = layout_part(e, false, 0, l);
  l->data = l->room = l->total;
  if (bad || !e->wants->variables) return bad;
  l->data = l->total = whole_pages(l->total);
  if ((bad = layout_part(e, true, e->wants->apart, l))) return bad;
  l->room = whole_pages(l->total + e->wants->apart);
  l->total = l->room + e->wants->room;
  return NULL;
}

/* Finds the address of a relocation's symbol: in the image, in the caller's room, or the stub of a function
 * of externs (got: the address in that stub). */
static const char *symbol_address(const Elf *e, const Layout *l, const uint8_t *image, const Elf64_Sym *s,
                                  bool got, uint64_t *addr) {
  if (s->st_shndx != SHN_UNDEF) {
    if (got) return "relocation through a table";
    if (s->st_shndx >= e->h.e_shnum || l->off[s->st_shndx] == UINT64_MAX)
      return "symbol in no loaded section";
    *addr = (uint64_t)(uintptr_t)image + l->off[s->st_shndx] + s->st_value;
    return NULL;
  }
  const char *prefix = e->wants->room_prefix;
  if (prefix && !got && !strncmp(str_at(e, s->st_name), prefix, strlen(prefix))) {
    *addr = (uint64_t)(uintptr_t)image + l->room;
    return NULL;
  }
  size_t x = 0, n = nextern(e);
  while (x < n && !str_is(e, s->st_name, extern_at(e, x)->name))
    x++;
  if (x == n) return "unknown symbol";
  *addr = (uint64_t)(uintptr_t)image + x * STUB_BYTES + (got ? STUB_ADDR : 0);
  return NULL;
}

enum { RELOCATES_NOTHING = 0 }; /* the same number on all machines */

static const char *relocate(const Elf *e, const Layout *l, uint8_t *image, unsigned index) {
  Elf64_Shdr rs, to;
  if (!section(e, index, &rs)) return "section past the end";
  if (rs.sh_info >= e->h.e_shnum || !section(e, rs.sh_info, &to)) return "relocations of no section";
  if (l->off[rs.sh_info] == UINT64_MAX) return NULL;
  if (rs.sh_type == SHT_REL) return "relocations without addend";
  if (rs.sh_entsize != sizeof(Elf64_Rela)) return "strange relocations";
  for (uint64_t i = 0; i < rs.sh_size / sizeof(Elf64_Rela); i++) {
    Elf64_Rela r;
    Elf64_Sym s;
    memcpy(&r, e->at + rs.sh_offset + i * sizeof r, sizeof r);
    uint32_t type = ELF64_R_TYPE(r.r_info);
    ElfPlace p;
    if (type == RELOCATES_NOTHING) continue;
    if (!e->machine->describe(type, &p)) return "unknown relocation";
    if (to.sh_type == SHT_NOBITS || r.r_offset > to.sh_size || p.width > to.sh_size - r.r_offset)
      return "relocation outside its section";
    if (!symbol(e, ELF64_R_SYM(r.r_info), &s)) return "relocation without symbol";
    uint8_t *place = image + l->off[rs.sh_info] + r.r_offset;
    uint64_t v;
    const char *why = symbol_address(e, l, image, &s, p.through_table, &v);
    if (why) return why;
    if ((why = e->machine->write(place, type, v + (uint64_t)r.r_addend))) return why;
  }
  return NULL;
}

/* Writes the stubs, then the bytes of the sections, then applies the relocations. */
static const char *image_fill(const Elf *e, const Layout *l, uint8_t *image) {
  Elf64_Shdr s;
  const char *bad = NULL;
  for (size_t i = 0; i < nextern(e); i++) {
    memcpy(image + i * STUB_BYTES, e->machine->jump, STUB_ADDR);
    memcpy(image + i * STUB_BYTES + STUB_ADDR, &extern_at(e, i)->fn, sizeof(AnyFn));
  }
  for (unsigned i = 0; i < e->h.e_shnum; i++)
    if (l->off[i] != UINT64_MAX && section(e, i, &s) && s.sh_type == SHT_PROGBITS)
      memcpy(image + l->off[i], e->at + s.sh_offset, s.sh_size);
  for (unsigned i = 0; i < e->h.e_shnum && !bad; i++)
    if (section(e, i, &s) && (s.sh_type == SHT_RELA || s.sh_type == SHT_REL)) bad = relocate(e, l, image, i);
  return bad;
}

/* The memory is first writable and then executable for good, never both. */
TgStatus elf_load_with(TgMem *mem, const TgOs *os, TgError *err, const void *obj, size_t nbytes,
                       const ElfWants *wants, Image *out) {
  *out = (Image){0};
  Elf e;
  Layout l = {0};
  uint8_t *im = NULL;
  size_t mapped = 0;
  TgStatus st = TG_ERR_COMPILE;
  const char *bad = elf_open(&e, obj, nbytes, wants);
  if (!bad && !(l.off = mem_alloc(mem, e.h.e_shnum * sizeof *l.off))) {
    bad = "out of memory";
    st = TG_ERR_NOMEM;
  }
  if (!bad) bad = layout(&e, &l);
  if (!bad) {
    mapped = whole_pages(l.total);
    void *p = os->mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
      bad = "cannot map memory";
      st = TG_ERR_NOMEM;
    } else
      im = p;
  }
  if (!bad) bad = image_fill(&e, &l, im);
  if (!bad) /* for processors with a separate cache of instructions */
    __builtin___clear_cache((char *)im, (char *)im + mapped);
  if (!bad && os->mprotect(im, e.wants->variables ? l.data : mapped, PROT_READ | PROT_EXEC)) {
    bad = "cannot make memory executable";
    st = TG_ERR_DEVICE;
  }
  mem_free(mem, l.off);
  if (bad) {
    if (im) os->munmap(im, mapped);
    return error_set(err, st, "object loader: %s", bad);
  }
  *out = (Image){.at = im, .size = l.total, .mapped = mapped, .data = l.data, .room = l.room};
  return TG_OK;
}

TgStatus elf_load(TgMem *mem, const TgOs *os, TgError *err, const void *obj, size_t nbytes, Image *out) {
  return elf_load_with(mem, os, err, obj, nbytes, NULL, out);
}

bool elf_symbols(const void *obj, size_t nbytes, const ElfWants *wants,
                 bool (*visit)(void *user, const ElfSymbol *s), void *user) {
  Elf e;
  Elf64_Sym s;
  Elf64_Shdr h;
  uint64_t off[MAX_SECTIONS];
  Layout l = {.off = off};
  if (elf_open(&e, obj, nbytes, wants) || layout(&e, &l)) return false;
  for (uint64_t i = 0; i < e.nsym; i++) {
    if (!symbol(&e, i, &s) || s.st_shndx >= e.h.e_shnum || off[s.st_shndx] == UINT64_MAX) continue;
    if (!section(&e, s.st_shndx, &h) || s.st_value >= h.sh_size || s.st_size > h.sh_size - s.st_value)
      continue;
    ElfSymbol x = {.name = str_at(&e, s.st_name),
                   .at = off[s.st_shndx] + s.st_value,
                   .nbytes = s.st_size,
                   .is_function = ELF64_ST_TYPE(s.st_info) == STT_FUNC,
                   .is_variable = ELF64_ST_TYPE(s.st_info) == STT_OBJECT && is_variable(&h)};
    if (!visit(user, &x)) return false;
  }
  return true;
}

typedef struct Wanted {
  const char *name;
  int64_t at;
} Wanted;

static bool is_wanted(void *user, const ElfSymbol *s) {
  Wanted *w = user;
  if (!s->is_function || strcmp(s->name, w->name)) return true;
  w->at = (int64_t)s->at;
  return false;
}

int64_t elf_symbol(const void *obj, size_t nbytes, const char *name) {
  Wanted w = {name, -1};
  elf_symbols(obj, nbytes, NULL, is_wanted, &w);
  return w.at;
}

void image_unmap(const TgOs *os, Image *im) {
  if (im->at) os->munmap(im->at, im->mapped);
  *im = (Image){0};
}
