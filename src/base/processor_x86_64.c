/* processor_x86_64.c: what an x86-64 processor has, as its cpuid instruction reports it. */
#ifdef __x86_64__
#include "base/processor.h"
#include <cpuid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The frequency is in leaf 22, if the processor has that leaf. */
double processor_mhz(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(22, 0, &a, &b, &c, &d) ? b & 0xffff : 0;
}

const char *processor_flag(void) { return "-march=native"; }

/* Returns XCR0: the registers whose state the system saves at a context switch. */
static uint64_t saved_state(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (uint64_t)d << 32 | a;
}

enum { AVX_STATE = 6, AVX512_STATE = 0xe6, TILE_STATE = 0x60000, AVX512_F = 1 << 16 };

int processor_vector_bytes(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  uint64_t saved = saved_state();
  bool leaf = __get_cpuid_count(7, 0, &a, &b, &c, &d);
  if (leaf && (b & AVX512_F) && (saved & AVX512_STATE) == AVX512_STATE) return 64;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_AVX) && (saved & AVX_STATE) == AVX_STATE ? 32 : 16;
}

int processor_vector_registers(void) { return processor_vector_bytes() == 64 ? 32 : 16; }

/* AMD's processors since Zen 4, which are the ones with 512 bits. */
bool processor_follows_runs(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  bool amd = __get_cpuid(0, &a, &b, &c, &d) && b == signature_AMD_ebx && c == signature_AMD_ecx;
  return amd && processor_vector_bytes() == 64;
}

bool processor_tiles(void) {
  enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25, ALL = AMX_BF16 | AMX_TILE | AMX_INT8 };

  unsigned a = 0, b = 0, c = 0, d = 0;
  if ((saved_state() & TILE_STATE) != TILE_STATE || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  return (d & ALL) == ALL;
}

Dots processor_dots(void) {
  enum { AVX2 = 1 << 5, AVX512_VNNI = 1 << 11, AVX_VNNI = 1 << 4, AVX512_BF16 = 1 << 5 };

  unsigned a = 0, b = 0, c = 0, d = 0, unused;
  uint64_t saved = saved_state();
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & AVX2) || (saved & AVX_STATE) != AVX_STATE)
    return DOTS_NONE;
  if (!__get_cpuid_count(7, 1, &a, &unused, &unused, &unused)) a = 0;
  if ((saved & AVX512_STATE) == AVX512_STATE && (b & AVX512_F) && (c & AVX512_VNNI))
    return a & AVX512_BF16 ? DOTS_BF16 : DOTS_BYTES;
  return a & AVX_VNNI ? DOTS_FOURS : DOTS_PAIRS;
}

void processor_features(char *out, size_t cap, char *names, size_t names_cap) {
  static const struct {
    const char *name;
    uint8_t leaf, reg, bit;
    uint32_t state;
  } known[] = {/* leaf: index in `leaves`; reg: 0..3 for a, b, c, d */
               {"sse4.2", 0, 2, 20, 0},
               {"avx", 0, 2, 28, AVX_STATE},
               {"f16c", 0, 2, 29, AVX_STATE},
               {"fma", 0, 2, 12, AVX_STATE},
               {"avx2", 1, 1, 5, AVX_STATE},
               {"avx512f", 1, 1, 16, AVX512_STATE},
               {"avx512bw", 1, 1, 30, AVX512_STATE},
               {"avx512vl", 1, 1, 31, AVX512_STATE},
               {"avx512vnni", 1, 2, 11, AVX512_STATE},
               {"avx512fp16", 1, 3, 23, AVX512_STATE},
               {"avx512bf16", 2, 0, 5, AVX512_STATE},
               {"avxvnni", 2, 0, 4, AVX_STATE},
               {"amx-tile", 1, 3, 24, TILE_STATE},
               {"amx-bf16", 1, 3, 22, TILE_STATE},
               {"amx-int8", 1, 3, 25, TILE_STATE}};

  uint64_t saved = saved_state();
  unsigned reg[4][4] = {{0}};
  size_t m = 0;
  static const unsigned leaves[][2] = {{1, 0}, {7, 0}, {7, 1}, {0x80000001, 0}};
  size_t n = 0;
  for (size_t i = 0; i < TG_COUNT(leaves); i++) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    __get_cpuid_count(leaves[i][0], leaves[i][1], &a, &b, &c, &d);
    if (i == 0) b = 0; /* contains the id of the core that this ran on */
    memcpy(reg[i], (unsigned[4]){a, b, c, d}, sizeof reg[i]);
    n += (size_t)snprintf(out + n, cap - n, "%x.%x.%x.%x ", a, b, c, d);
  }
  snprintf(out + n, cap - n, "%llx", (unsigned long long)saved);
  for (size_t i = 0; i < TG_COUNT(known); i++)
    if (reg[known[i].leaf][known[i].reg] >> known[i].bit & 1 && (saved & known[i].state) == known[i].state)
      m += (size_t)snprintf(names + m, names_cap - m, "%s%s", m ? " " : "", known[i].name);
}

/* The text has the registers of cpuid, followed by the state that the system saves. */
enum { NREG = 16, HYPERVISOR = 1u << 31, LEAF1_C = 2 };

static bool registers_read(const char *text, unsigned long long reg[NREG + 1]) {
  char *end = (char *)text;
  for (int i = 0; i <= NREG; i++) {
    const char *at = end;
    reg[i] = strtoull(at, &end, 16);
    char after = i == NREG ? 0 : i % 4 == 3 ? ' ' : '.';
    if (end == at || *end != after) return false;
    end += i < NREG;
  }
  return true;
}

bool processor_runs(const char *features) {
  char here[200], names[200];
  unsigned long long need[NREG + 1], has[NREG + 1];
  processor_features(here, sizeof here, names, sizeof names);
  if (!registers_read(features, need) || !registers_read(here, has)) return false;
  need[0] = 0;
  need[4] = 0; /* the model, and the number of leaves */
  need[LEAF1_C] &= ~(unsigned long long)HYPERVISOR;
  need[12] = need[13] = 0; /* the extended leaf: model and brand */
  for (int i = 0; i <= NREG; i++)
    if (need[i] & ~has[i]) return false;
  return true;
}
#else
typedef int FileIsForX86; /* a translation unit must have at least one declaration */
#endif
