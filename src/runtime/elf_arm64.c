/* elf_arm64.c: the relocations of 64-bit Arm that compilers use in position-independent code. An instruction
 * holds a part of the value in a bit field; the relocation replaces that field. */
#include "runtime/elf_private.h"
#include <string.h>

enum {
  R_ABS64 = 257,
  R_ABS32 = 258,
  R_PREL64 = 260,
  R_PREL32 = 261,
  R_LD_PREL_LO19 = 273,
  R_ADR_PREL_LO21 = 274,
  R_ADR_PREL_PG_HI21 = 275,
  R_ADR_PREL_PG_HI21_NC = 276,
  R_ADD_ABS_LO12_NC = 277,
  R_LDST8_ABS_LO12_NC = 278,
  R_JUMP26 = 282,
  R_CALL26 = 283,
  R_LDST16_ABS_LO12_NC = 284,
  R_LDST32_ABS_LO12_NC = 285,
  R_LDST64_ABS_LO12_NC = 286,
  R_LDST128_ABS_LO12_NC = 299,
  R_ADR_GOT_PAGE = 311,
  R_LD64_GOT_LO12_NC = 312
};

/* size of the pages that ADRP counts, which need not be the system's pages */
enum { PAGE_BITS = 12 };

static bool describe(uint32_t type, ElfPlace *out) {
  *out = (ElfPlace){.width = type == R_ABS64 || type == R_PREL64 ? 8 : 4};
  switch (type) {
  case R_ADR_GOT_PAGE:
  case R_LD64_GOT_LO12_NC: out->through_table = true; return true;
  case R_ABS64:
  case R_ABS32:
  case R_PREL64:
  case R_PREL32:
  case R_LD_PREL_LO19:
  case R_ADR_PREL_LO21:
  case R_ADR_PREL_PG_HI21:
  case R_ADR_PREL_PG_HI21_NC:
  case R_ADD_ABS_LO12_NC:
  case R_LDST8_ABS_LO12_NC:
  case R_LDST16_ABS_LO12_NC:
  case R_LDST32_ABS_LO12_NC:
  case R_LDST64_ABS_LO12_NC:
  case R_LDST128_ABS_LO12_NC:
  case R_JUMP26:
  case R_CALL26: return true;
  default: return false;
  }
}

static bool in_bits(int64_t v, int bits) {
  int64_t half = (int64_t)1 << (bits - 1);
  return v >= -half && v < half;
}

static const char *field_put(uint8_t *place, int from, int bits, uint64_t v) {
  uint32_t word, mask = (((uint32_t)1 << bits) - 1) << from;
  memcpy(&word, place, sizeof word);
  word = (word & ~mask) | ((uint32_t)(v << from) & mask);
  memcpy(place, &word, sizeof word);
  return NULL;
}

static const char *data_put(uint8_t *place, int64_t v, size_t width) {
  bool fits = width == 8 || in_bits(v, 32) || (uint64_t)v == (uint32_t)v;
  if (!fits) return "relocation out of reach";
  memcpy(place, &v, width); /* little endian: the low bytes come first */
  return NULL;
}

/* Writes a distance, in units of 1 << shift bytes, into one field. */
static const char *distance_put(uint8_t *place, int64_t v, int shift, int from, int bits) {
  if (v & (((int64_t)1 << shift) - 1)) return "relocation between instructions";
  if (!in_bits(v, bits + shift)) return "relocation out of reach";
  return field_put(place, from, bits, (uint64_t)v >> shift);
}

/* Writes the value of an ADR or ADRP, whose two lowest bits are in a separate field. */
static const char *adr_put(uint8_t *place, int64_t v) {
  if (!in_bits(v, 21)) return "relocation out of reach";
  field_put(place, 29, 2, (uint64_t)v);
  return field_put(place, 5, 19, (uint64_t)v >> 2);
}

/* Writes the offset within a page, in units of the size that is loaded or stored. */
static const char *low_put(uint8_t *place, uint64_t value, int shift) {
  uint64_t low = value & ((1u << PAGE_BITS) - 1);
  if (low & ((1u << shift) - 1)) return "relocation of unaligned data";
  return field_put(place, 10, PAGE_BITS, low >> shift);
}

static const char *write(uint8_t *place, uint32_t type, uint64_t value) {
  uint64_t here = (uint64_t)(uintptr_t)place;
  int64_t away = (int64_t)(value - here);
  int64_t pages = (int64_t)(value >> PAGE_BITS) - (int64_t)(here >> PAGE_BITS);
  switch (type) {
  case R_ABS64: return data_put(place, (int64_t)value, 8);
  case R_ABS32: return data_put(place, (int64_t)value, 4);
  case R_PREL64: return data_put(place, away, 8);
  case R_PREL32: return data_put(place, away, 4);
  case R_LD_PREL_LO19: return distance_put(place, away, 2, 5, 19);
  case R_JUMP26:
  case R_CALL26: return distance_put(place, away, 2, 0, 26);
  case R_ADR_PREL_LO21: return adr_put(place, away);
  case R_ADR_PREL_PG_HI21:
  case R_ADR_PREL_PG_HI21_NC:
  case R_ADR_GOT_PAGE: return adr_put(place, pages);
  case R_ADD_ABS_LO12_NC:
  case R_LDST8_ABS_LO12_NC: return low_put(place, value, 0);
  case R_LDST16_ABS_LO12_NC: return low_put(place, value, 1);
  case R_LDST32_ABS_LO12_NC: return low_put(place, value, 2);
  case R_LDST64_ABS_LO12_NC:
  case R_LD64_GOT_LO12_NC: return low_put(place, value, 3);
  case R_LDST128_ABS_LO12_NC: return low_put(place, value, 4);
  default: return "unknown relocation";
  }
}

const ElfMachine elf_arm64 = {.number = 183,
                              .name = "arm64",
                              .jump = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6}, /* ldr x16, 8; br x16 */
                              .describe = describe,
                              .write = write};
