/* board.c: the least that a Cortex-M needs before main: a stack, the table of vectors, the memory of
 * variables, and the FPU. Text and the end go to the debugger, or to the emulator, which takes the place of
 * one. */
#include "board.h"
#include <stdint.h>

extern uint32_t stack_top[], data_from[], data_begin[], data_end[], bss_begin[], bss_end[];
int main(void);

/* Semihosting: the debugger sees the breakpoint, and reads what is wanted from two registers. */
static void debugger(int what, const void *with) {
  register int r0 __asm__("r0") = what;
  register const void *r1 __asm__("r1") = with;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void board_text(const char *text) { debugger(4, text); }

void board_number(const char *before, long v, const char *after) {
  char digits[24], *p = digits + sizeof digits - 1;
  unsigned long u = v < 0 ? 0ul - (unsigned long)v : (unsigned long)v;
  *p = 0;
  do
    *--p = (char)('0' + u % 10);
  while ((u /= 10) != 0);
  if (v < 0) *--p = '-';
  board_text(before), board_text(p), board_text(after);
}

void board_end(int status) {
  debugger(0x18, status ? (const void *)0x20023 : (const void *)0x20026);
  for (;;) {}
}

static void reset(void) {
  volatile uint32_t *access = (volatile uint32_t *)0xe000ed88; /* of coprocessors 10 and 11: the FPU */
  *access |= 0xfu << 20;
  __asm__ volatile("dsb\n\tisb");
  for (uint32_t *to = data_begin, *from = data_from; to < data_end;)
    *to++ = *from++;
  for (uint32_t *to = bss_begin; to < bss_end;)
    *to++ = 0;
  board_end(main());
}

static void fault(void) {
  board_text("fault\n");
  board_end(1);
}

typedef void (*Vector)(void);

__attribute__((section(".vectors"), used)) static const Vector vectors[16] = {
    (Vector)(uintptr_t)stack_top, reset, fault, fault, fault, fault, fault};
