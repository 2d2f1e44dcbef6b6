/* fibre.c: a switch saves the registers that a call must preserve on the stack that it leaves, and restores
 * them from the stack that it enters. It is in assembly for x86-64 and AArch64, and uses ucontext elsewhere.
 * The address sanitizer is notified of each switch. */
#define _GNU_SOURCE
#include "emu/fibre.h"
#include <string.h>

#if defined __SANITIZE_ADDRESS__
#define WITH_ASAN 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

/* The call that a new fibre makes, at the top of its stack. */
typedef struct Start {
  FibreFn fn;
  void *arg;
} Start;

/* the fibre that switched last; on arrival the sanitizer returns its stack */
static _Thread_local Fibre *left;

static void arrive(Fibre *f) {
#ifdef WITH_ASAN
  const void *low = NULL;
  size_t nbytes = 0;
  __sanitizer_finish_switch_fiber(f->sanitizer, &low, &nbytes);
  if (left && !left->low) left->low = low, left->nbytes = nbytes;
#else
  (void)f;
#endif
}

static _Thread_local Fibre *entering;

static void begin(Start *s) {
  arrive(entering);
  s->fn(s->arg);
}

#if (defined __x86_64__ || defined __aarch64__) && !defined TG_FIBRE_UCONTEXT
void tg_fibre_jump(void **save, void *load);
void tg_fibre_begin(void);

/* Defines a function of this library alone in assembly, for ELF and for Mach-O. */
#ifdef __MACH__
#define ASM_NAME(name) ".text\n.p2align 4\n.globl _" name "\n.private_extern _" name "\n_" name ":\n"
#else
#define ASM_NAME(name) ".text\n.globl " name "\n.hidden " name "\n.type " name ", %function\n" name ":\n"
#endif
#define NAME_JUMP  ASM_NAME("tg_fibre_jump")
#define NAME_BEGIN ASM_NAME("tg_fibre_begin")

#ifdef __x86_64__
/* r15 r14 r13 r12 rbx rbp and the return address, lowest first */
enum { SAVED_WORDS = 7, FIRST_ARG = 3, FIRST_FN = 2, FIRST_PC = 6 };

__asm__(NAME_JUMP "  push %rbp\n"
                  "  push %rbx\n"
                  "  push %r12\n"
                  "  push %r13\n"
                  "  push %r14\n"
                  "  push %r15\n"
                  "  mov %rsp, (%rdi)\n"
                  "  mov %rsi, %rsp\n"
                  "  pop %r15\n"
                  "  pop %r14\n"
                  "  pop %r13\n"
                  "  pop %r12\n"
                  "  pop %rbx\n"
                  "  pop %rbp\n"
                  "  ret\n");
__asm__(NAME_BEGIN "  mov %r12, %rdi\n"
                   "  call *%r13\n"
                   "  ud2\n");
#else
/* x19 .. x30, of which the last is the return address, then d8 .. d15, lowest first */
enum { SAVED_WORDS = 20, FIRST_ARG = 0, FIRST_FN = 1, FIRST_PC = 11 };

__asm__(NAME_JUMP "  sub sp, sp, #160\n"
                  "  stp x19, x20, [sp, #0]\n"
                  "  stp x21, x22, [sp, #16]\n"
                  "  stp x23, x24, [sp, #32]\n"
                  "  stp x25, x26, [sp, #48]\n"
                  "  stp x27, x28, [sp, #64]\n"
                  "  stp x29, x30, [sp, #80]\n"
                  "  stp d8, d9, [sp, #96]\n"
                  "  stp d10, d11, [sp, #112]\n"
                  "  stp d12, d13, [sp, #128]\n"
                  "  stp d14, d15, [sp, #144]\n"
                  "  mov x9, sp\n"
                  "  str x9, [x0]\n"
                  "  mov sp, x1\n"
                  "  ldp x19, x20, [sp, #0]\n"
                  "  ldp x21, x22, [sp, #16]\n"
                  "  ldp x23, x24, [sp, #32]\n"
                  "  ldp x25, x26, [sp, #48]\n"
                  "  ldp x27, x28, [sp, #64]\n"
                  "  ldp x29, x30, [sp, #80]\n"
                  "  ldp d8, d9, [sp, #96]\n"
                  "  ldp d10, d11, [sp, #112]\n"
                  "  ldp d12, d13, [sp, #128]\n"
                  "  ldp d14, d15, [sp, #144]\n"
                  "  add sp, sp, #160\n"
                  "  ret\n");
__asm__(NAME_BEGIN "  mov x0, x19\n"
                   "  blr x20\n"
                   "  brk #1\n");
#endif

/* Makes the stack as a jump would have left it: the saved registers, two of which hold the call to make. */
static void stack_prepare(Fibre *f, Start *s) {
  void (*to)(void) = tg_fibre_begin;
  void (*fn)(Start *) = begin;
  void **at = (void **)s - SAVED_WORDS;
  memset(at, 0, SAVED_WORDS * sizeof *at);
  at[FIRST_ARG] = s;
  memcpy(&at[FIRST_FN], &fn, sizeof fn);
  memcpy(&at[FIRST_PC], &to, sizeof to);
  f->stopped = at;
}

static void jump(Fibre *from, Fibre *to) { tg_fibre_jump(&from->stopped, to->stopped); }
#else
#include <ucontext.h>

static void begin_current(void) {
  Start s;
  memcpy(&s, entering->low + entering->nbytes - sizeof s, sizeof s);
  begin(&s);
}

/* The context is at the low end of the stack, which the calls do not reach. */
static void stack_prepare(Fibre *f, Start *s) {
  ucontext_t *c = (ucontext_t *)(uintptr_t)f->low;
  (void)s;
  getcontext(c);
  c->uc_stack.ss_sp = c + 1;
  c->uc_stack.ss_size = f->nbytes - sizeof *c - 64;
  c->uc_link = NULL;
  makecontext(c, begin_current, 0);
  f->stopped = c;
}

static void jump(Fibre *from, Fibre *to) {
  ucontext_t here;
  if (!from->stopped) from->stopped = &here; /* the caller's own stack */
  ucontext_t *target = to->stopped;
  bool own = from->stopped == &here;
  swapcontext(from->stopped, target);
  if (own) from->stopped = NULL;
}
#endif

void fibre_prepare(Fibre *f, uint8_t *low, size_t nbytes, FibreFn fn, void *arg) {
#ifdef WITH_ASAN
  /* frames that were abandoned had marked it */
  __asan_unpoison_memory_region(low, nbytes);
#endif
  Start *s = (Start *)(low + nbytes) - 1;
  *f = (Fibre){.low = low, .nbytes = nbytes};
  *s = (Start){fn, arg};
  stack_prepare(f, s);
}

void fibre_switch(Fibre *from, Fibre *to) {
  left = from;
  entering = to;
#ifdef WITH_ASAN
  __sanitizer_start_switch_fiber(&from->sanitizer, to->low, to->nbytes);
#endif
  jump(from, to);
  arrive(from);
}
