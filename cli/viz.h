/* viz.h: what `tg explain` and `tg viz` share. */
#ifndef VIZ_H
#define VIZ_H
/* Runs a program (argument[0], ..), or `tg run` of an ONNX model, with the variable set; what it prints goes to
 * stderr. Its exit code; 127: it does not start. */
int program_with(char **argument, const char *command, const char *variable, const char *value);
#endif
