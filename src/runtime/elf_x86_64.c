/* elf_x86_64.c: the relocations of x86-64 that compilers use in position-independent code. */
#include "runtime/elf_private.h"
#include <string.h>

enum {
  R_64 = 1,
  R_PC32 = 2,
  R_PLT32 = 4,
  R_GOTPCREL = 9,
  R_32 = 10,
  R_32S = 11,
  R_GOTPCRELX = 41,
  R_REX_GOTPCRELX = 42
};

static bool describe(uint32_t type, ElfPlace *out) {
  *out = (ElfPlace){.width = type == R_64 ? 8 : 4};
  switch (type) {
  case R_GOTPCREL:
  case R_GOTPCRELX:
  case R_REX_GOTPCRELX: out->through_table = true; return true;
  case R_64:
  case R_PC32:
  case R_PLT32:
  case R_32:
  case R_32S: return true;
  default: return false;
  }
}

static bool fits(uint32_t type, uint64_t v) {
  switch (type) {
  case R_64: return true;
  case R_32: return v == (uint32_t)v;
  default: return (int64_t)v == (int32_t)v;
  }
}

static const char *write(uint8_t *place, uint32_t type, uint64_t value) {
  bool absolute = type == R_64 || type == R_32 || type == R_32S;
  uint64_t v = absolute ? value : value - (uint64_t)(uintptr_t)place;
  if (!fits(type, v)) return "relocation out of reach";
  memcpy(place, &v, type == R_64 ? 8 : 4); /* little endian: the low bytes come first */
  return NULL;
}

const ElfMachine elf_x86_64 = {.number = 62,
                               .name = "x86-64",
                               .jump = {0xff, 0x25, 2, 0, 0, 0, 0x90, 0x90}, /* jmp *2(%rip) */
                               .describe = describe,
                               .write = write};
