/* info.h: shared by the files of `tg info`. */
#ifndef TG_CLI_INFO_H
#define TG_CLI_INFO_H
#include "cli.h"

typedef enum FileKind { NO_MODEL, SAFETENSORS, GGUF, TORCH, ONNX, NPY, ZIP, TAR, IDX, GZIP } FileKind;

FileKind info_kind_of(const char *path); /* by its first bytes */
void info_tensor_line(const char *name, TgTensor *t, bool json);
void info_state_lines(const char *path, const char *kind, const TgState *s, bool json);

/* info_files.c: what is no state dictionary. *torch: the archive is a checkpoint of torch, and nothing was
 * said. wait: over when the file is read, before anything is printed. False: an error, in ctx or printed. */
bool info_file(TgContext *ctx, const char *path, FileKind kind, bool json, CliWait *wait, bool *torch);
#endif
