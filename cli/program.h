/* program.h: programs that a command runs (program.c). */
#ifndef TG_CLI_PROGRAM_H
#define TG_CLI_PROGRAM_H
#include <stdbool.h>
#include <sys/types.h>

enum { PROGRAM_ABSENT = 127 }; /* the exit code of one that does not start, as shells have it */

enum { ASKED_BY_TERMINAL = 1, ASKED_BY_PROCESS };

/* As fork. Until program_awaited of its number, a SIGINT, SIGTERM or SIGHUP that another process sends to
 * this one goes on to the program. */
pid_t program_fork(void);
int program_awaited(pid_t pid); /* its exit code */
/* From now on SIGINT, SIGTERM and SIGHUP do not end this process (program_fork begins so too): who has asked
 * for its end, or 0. */
void program_catch(void);
int program_asked(void);
/* Until it ends, a reader of stdout that leaves (`| head`) does not end this process, which has a folder to
 * take away; then it does. */
void program_outlives_reader(bool begins);

/* Runs a program (argument[0], ..), or `tg run` of an ONNX model, with the variable set; what it prints goes
 * to stderr. Its exit code. */
int program_with(char **argument, const char *command, const char *variable, const char *value);
/* Says how a program ended that failed and was there. */
void program_ended(const char *command, const char *name, int code);
/* After exec failed: says why, by errno. */
void program_absent(const char *command, const char *name);
int program_code(int status); /* of waitpid; 128 + its number: ended by a signal */
#endif
