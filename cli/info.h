/* info.h: what the files of `tg info` share. */
#ifndef TG_CLI_INFO_H
#define TG_CLI_INFO_H
#include "cli.h"

typedef enum FileKind { NO_MODEL, SAFETENSORS, GGUF, TORCH, FOLDER, ONNX, NPY, ZIP, TAR, IDX, GZIP } FileKind;

FileKind info_kind_of(const char *path); /* decided by its first bytes; FOLDER: it has a config.json */
void info_tensor_line(const char *name, TgTensor *t, bool json);
void info_state_lines(const char *path, const char *kind, const TgState *s, bool json);

/* info_files.c: prints a file without a state dictionary. *torch: it is an archive with a checkpoint of
 * torch, and nothing was printed. wait is ended once the file is read, before anything is printed. Returns
 * false on an error, which is in ctx or was printed. */
bool info_file(TgContext *ctx, const char *path, FileKind kind, bool json, CliWait *wait, bool *torch);
#endif
