/* program.h: programs that a command runs (program.c). */
#ifndef TG_CLI_PROGRAM_H
#define TG_CLI_PROGRAM_H

enum { PROGRAM_ABSENT = 127 }; /* the exit code of one that does not start, as shells have it */

/* Runs a program (argument[0], ..), or `tg run` of an ONNX model, with the variable set; what it prints goes
 * to stderr. Its exit code. */
int program_with(char **argument, const char *command, const char *variable, const char *value);
/* Says how a program ended that failed and was there. */
void program_ended(const char *command, const char *name, int code);
/* After exec failed: says why, by errno. */
void program_absent(const char *command, const char *name);
int program_code(int status); /* of waitpid; 128 + its number: ended by a signal */
#endif
