/* metal_emu.h: the part of Apple's runtime and frameworks that metal_api.def needs, with emulated GPUs
 * (emulate.h), for tg and the tests. The library finds it through the table in runtime/emulators.h. */
#ifndef TG_METAL_EMU_H
#define TG_METAL_EMU_H
#include "emu/table.h"
#include "runtime/metal.h"

/* Returns TG_ERR_COMPILE for a text that C++ accepts but Metal's compiler refuses, with the reason and the
 * line. */
TgStatus metal_lint(TgMem *mem, const char *text, TgError *err);

/* For tests: the number of objects that exist in the mock, and of calls since it was opened. */
typedef struct MetalMockCounts {
  int objects, buffers, indirects, pools; /* that exist now */
  uint64_t launches, executions, commands_written, compiles, fast_compiles, messages, misuses;
} MetalMockCounts;

MetalMockCounts metal_mock_counts(void);
/* objects, pools and misuses that were left by all users who have closed it */
MetalMockCounts metal_mock_left(void);
/* the first misuse since it was opened; "": none */
const char *metal_mock_misuse(void);
/* Makes the nth message from now on fail in the way of its kind: it returns 0, or its command buffer ends
 * with an error. name: the message's name in metal_api.def ("new_buffer"); NULL: any message that can fail.
 * nth 0: none fails. Returns false if there is no such message. */
bool metal_mock_fail(const char *name, uint64_t nth);
/* Returns the types of a message's result, receiver, name and arguments in the runtime's notation: "@@:Q". */
const char *metal_mock_types(MetalMessage m);
#endif
