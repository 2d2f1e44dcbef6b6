/* serve.h: what the files of `tg serve` share. HTTP runs in a thread of its own (serve_http.c), which reads
 * requests (serve_ask.c) and puts them into a queue; models run in the main thread (serve.c), which alone
 * touches a context. A Job is what both have in their hands: its fields behind `lock` are shared. */
#ifndef TG_CLI_SERVE_H
#define TG_CLI_SERVE_H
#include "llm.h"
#include <jansson.h>
#include <pthread.h>

typedef struct ServeOptions {
  LlmChoices llm; /* what a request does not say */
  const char *host, *key;
  int64_t port, slots, queue, batch; /* batch: 0: what suits the model */
  bool reuse;
} ServeOptions;

/* ---- requests */
typedef enum Route { ROUTE_CHAT, ROUTE_TEXT, ROUTE_EMBED, ROUTE_RANK } Route;

enum { MOST_CHOICES = 16, MOST_LOGPROBS = 20, MOST_INPUTS = 2048 };

/* Texts and lists are parts of json. */
typedef struct Ask {
  Route route;
  json_t *json;
  const char *model; /* NULL: any */
  json_t *messages, *tools;
  json_t *prompt; /* of a completion, of embeddings: a list of texts, or of lists of ids; the documents */
  json_t *query;  /* that documents are ranked for */
  int64_t best;   /* so many of the documents are wanted */
  json_t *schema; /* NULL: none */
  const char *grammar;            /* NULL: none */
  int64_t tokens, n, seed, top_k; /* n: choices of each prompt */
  double temperature, top_p, min_p, repeat, presence, frequency;
  CliTexts stop;
  int64_t logprobs; /* -1: none are wanted; else how many of the likeliest besides */
  int32_t *bias_ids;
  float *bias;
  int64_t nbias;
  bool stream, usage;
  bool base64; /* how embeddings are written */
} Ask;

/* false: it cannot be done, and `why` and `param` (which may be "") say what is wrong. */
bool ask_read(Ask *a, Route route, const char *body, size_t n, const LlmChoices *usual, char why[200],
              char param[40]);
void ask_free(Ask *a);

/* ---- jobs */
struct MHD_Connection;

typedef struct Server Server;

typedef struct Job {
  Server *server;
  struct MHD_Connection *connection;
  struct Job *next; /* in the queue */
  char *body;
  size_t nbody, body_cap;
  bool begun, refused; /* its headers were read; its body is not wanted */
  Route route;
  Ask ask;
  int fd;

  /* shared */
  int holders;                    /* of the two threads */
  bool queued, waits, gone, done; /* waits: its connection is suspended; gone: nobody reads it */
  int status;                     /* 0: not known yet */
  char *out;
  size_t nout, out_cap, sent;
} Job;

void job_put(Job *j, const char *text, size_t n); /* more of the reply */
void job_begin(Job *j, int status);               /* of a stream: its status is known */
void job_end(Job *j, int status);                 /* no more comes; the job is given up */
void job_fail(Job *j, int status, const char *type, const char *message);
bool job_gone(Job *j); /* the client has hung up */

/* ---- the server */
typedef struct Counts {
  int64_t requests, refused, failed, prompt_tokens, cached_tokens, tokens;
  double prompt_s, tokens_s;
} Counts;

struct Server {
  const ServeOptions *o;
  struct MHD_Daemon *daemon;
  json_t *names; /* of the models, as /v1/models lists them */
  pthread_mutex_t lock;
  pthread_cond_t wake;
  Job *first, *last;            /* the queue */
  int64_t queued, active, open; /* requests that wait, that are replied to, that have a connection */
  bool closing;
  Counts counts;
};

bool http_begin(Server *s, int *port); /* false: it was said why. *port: the one that it listens on */
void http_end(Server *s);
/* The job at the head of the queue that `can` takes, out of the queue; NULL: none. */
Job *http_next(Server *s, bool (*can)(const Job *j, void *user), void *user);
/* Waits for a job, at most so long. */
void http_wait(Server *s, double seconds);

/* ---- serve_reply.c: a reply as OpenAI's JSON */
typedef struct Bytes {
  char *at; /* ended by a 0 byte; NULL: none so far */
  size_t n, cap;
} Bytes;

typedef struct Answer {
  Job *j;
  const char *model;
  char id[48];
  int64_t created, choice, prompt, cached, made; /* made: tokens of all choices */
  json_t *choices;                               /* of a reply that is no stream */
  json_t *logs;                                  /* logprobs of tokens that are not sent yet */
  Bytes text;                                    /* of the choice so far, not sent yet */
  TgDetokenizer *spelling;                       /* of single tokens, for the logprobs; NULL: none so far */
  int64_t characters;                            /* of the choice's tokens with logprobs */
  Bytes seen;                                    /* of a character that the last of them begins */
  bool begun;                                    /* the choice's first event is sent */
} Answer;

bool answer_begin(Answer *a, Job *j, const char *model, int64_t number);
void answer_text(Answer *a, const char *text, size_t n);
void answer_token(Answer *a, const TgTokenizer *t, int64_t id, const float *logits, int64_t vocabulary);
void answer_flush(Answer *a); /* of a stream: what there is goes out */
void answer_choice(Answer *a, LlmEnd end);
void answer_end(Answer *a);                               /* the job ends with it */
void answer_vector(Answer *a, const float *v, int64_t n); /* the next embedding */
void answer_score(Answer *a, double score);               /* of the next document */
void answer_free(Answer *a);                              /* of one that did not end */

/* Bytes that need not be UTF-8, as a text: U+FFFD stands for each sequence that is none. */
json_t *serve_text(const char *text, size_t n);

extern const unsigned char serve_page[]; /* the chat page: serve_page.html */
extern const size_t serve_page_bytes;
#endif
