/* test_networks.c: random networks (tests/networks): values, gradients, gradients of gradients, eager and
 * captured, in every float dtype. What is right is said by the same program in f64 on INTERP, and by PyTorch
 * in f64 where $PYTHON (python3) has it. How far a number may be off is measured, not guessed: both also run
 * with every value moved by about the rounding of its dtype.
 *   build/test_networks [DEVICE[/EVERY]]..    CPU/8: every eighth program on the CPU
 * In the environment: FIRST and N choose programs. ORACLE=twin or torch: that one alone. SHOW=1 prints them
 * as Python, ALL=1 compares every value on the way. */
#include "networks/networks.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { BATCH = 1000, GROUP = 8, SUSPECTS = 64, DEVICES = 12, ROWS = 256, TWINS = 4 };

typedef struct Device {
  char name[32];
  int every;
  int64_t run, captured;
} Device;

typedef struct Suspect {
  int program, device;
  NetResult got;
  char oracle;
} Suspect;

static Device devices[DEVICES];
static int ndevices;
static NetRecord records[BATCH];
static NetReference twins[BATCH], torches[BATCH];
static Suspect suspects[SUSPECTS];
static int nsuspects;
static int64_t wrong, failed, undecided, refused, lacking, values, surely, programs, seconds;

static struct {
  const char *name;
  int64_t n;
} rows[ROWS];

static void count_rows(const NetRecord *r) {
  for (int i = 0; i < r->nsteps; i++) {
    int k = 0;
    while (k < ROWS - 1 && rows[k].name && strcmp(rows[k].name, r->rows[i]))
      k++;
    rows[k].name = r->rows[i], rows[k].n++;
  }
}

static void fault_of(const NetRecord *r, const char *device, const char *fault) {
  failed++;
  print_message("program %llu on %s: %s\n", (unsigned long long)r->number, device, fault);
}

static void tell(const NetRecord *r, const char *device, const NetResult *got, const NetReference *want,
                 int64_t at, int output, const char *oracle) {
  const NetValue *v = &got->value[output];
  int64_t before = 0;
  for (int i = 0; i < output; i++)
    before += got->value[i].count;
  print_message("program %llu on %s: %s (%s), element %lld is %.17g, by %s %.17g, give or take %.3g:",
                (unsigned long long)r->number, device, v->what, tg_dtype_name(v->dtype), (long long)at,
                v->v[at], oracle, want->v[before + at], want->far[before + at]);
  for (int i = 0; i < r->nsteps; i++)
    print_message(" %s", r->rows[i]);
  print_message("\n");
}

/* ---- what differs at first sight is looked at again, with a reference that was moved more and farther */
static void suspect(int program, int device, NetResult *got, char oracle) {
  if (nsuspects == SUSPECTS) {
    wrong++;
    print_message("program %llu on %s: one of too many that differ\n",
                  (unsigned long long)records[program].number, devices[device].name);
    net_result_free(got);
  } else
    suspects[nsuspects++] = (Suspect){program, device, *got, oracle};
}

static void judge_again(Suspect *s, NetReference *want) {
  int output;
  int64_t ignored = 0, at = want->undecided ? -1 : net_wrong(&s->got, want, true, &output, &ignored);
  if (at < 0) return;
  wrong++;
  tell(&records[s->program], devices[s->device].name, &s->got, want, at, output,
       s->oracle == 't' ? "PyTorch" : "the twin");
}

static void look_again(void) {
  enum { MORE = 40, FARTHER = 8 };

  NetRecord *asked[SUSPECTS];
  NetReference answer[SUSPECTS] = {{.count = 0}};
  int which[SUSPECTS], n = 0;
  for (int i = 0; i < nsuspects; i++) {
    NetReference want;
    char fault[700];
    if (suspects[i].oracle == 't')
      asked[n] = &records[suspects[i].program], which[n++] = i;
    else if (net_twin(&records[suspects[i].program], MORE, FARTHER, &want, fault, sizeof fault)) {
      judge_again(&suspects[i], &want);
      net_reference_free(&want);
    } else
      fault_of(&records[suspects[i].program], "INTERP", fault);
  }
  if (n) assert_true(net_torch(asked, n, MORE, FARTHER, answer));
  for (int i = 0; i < n; i++)
    judge_again(&suspects[which[i]], &answer[i]), net_reference_free(&answer[i]);
  for (int i = 0; i < nsuspects; i++)
    net_result_free(&suspects[i].got);
  nsuspects = 0;
}

/* ---- a batch of programs on a device, some of them as one schedule */
static void judge(int program, int device, NetResult *got) {
  const NetReference *by[] = {&twins[program], &torches[program]};
  if (got->fault[0]) {
    fault_of(&records[program], devices[device].name, got->fault);
    net_result_free(got);
    return;
  }
  for (int i = 0; i < 2; i++) {
    int output;
    if (by[i]->count <= 0 || by[i]->undecided) continue;
    if (net_wrong(got, by[i], false, &output, &surely) >= 0) {
      suspect(program, device, got, torches[program].count > 0 && !torches[program].undecided ? 't' : 'i');
      return;
    }
  }
  for (int i = 0; i < got->n; i++)
    values += got->value[i].count;
  net_result_free(got);
}

static void run_group(const int *program, int n, int device, bool captured) {
  NetRecord *r[GROUP] = {NULL};
  NetResult got[GROUP] = {{.n = 0}};
  for (int i = 0; i < n; i++)
    r[i] = &records[program[i]];
  net_run(r, n, (NetRun){.device = devices[device].name, .captured = captured}, got);
  for (int i = 0; i < n; i++)
    judge(program[i], device, &got[i]);
  devices[device].run += n;
  if (captured) devices[device].captured += n;
}

static bool metal(const char *name) { return strstr(name, "METAL") != NULL; }

static void run_device(int device, int n) {
  int group[GROUP], have = 0;
  for (int i = 0; i < n; i++) {
    const NetRecord *r = &records[i];
    if (!r->noted || r->number % (uint64_t)devices[device].every) continue;
    if (metal(devices[device].name) && net_wants_f64(r->number)) continue;
    if (!r->reads && (r->number / 5) % 8 == 0) {
      run_group(&i, 1, device, true);
      continue;
    }
    group[have++] = i;
    if (have == GROUP) run_group(group, have, device, false), have = 0;
  }
  if (have) run_group(group, have, device, false);
}

static void run_batch(uint64_t first, int n, bool twin, bool torch) {
  static NetRecord *all[BATCH];
  for (int i = 0; i < n; i++) {
    NetResult noted = {.n = 0};
    records[i] = (NetRecord){.number = first + (uint64_t)i, .all = getenv("ALL") != NULL};
    net_record(&records[i], &noted);
    if (noted.fault[0]) fault_of(&records[i], "any device", noted.fault);
    all[i] = &records[i];
    count_rows(&records[i]);
    if (getenv("SHOW") && records[i].python.text) puts(records[i].python.text);
  }
  for (int i = 0; i < n && twin; i++) {
    char fault[700];
    bool asked =
        records[i].noted && (!torch || records[i].number % TWINS == 0); /* where PyTorch is asked too */
    if (asked && !net_twin(&records[i], 2, 1, &twins[i], fault, sizeof fault))
      fault_of(&records[i], "INTERP", fault);
  }
  if (torch) {
    static NetReference got[BATCH];
    int noted = 0;
    for (int i = 0; i < n; i++)
      if (records[i].noted) all[noted++] = &records[i];
    assert_true(net_torch(all, noted, 1, 1, got));
    for (int i = 0; i < noted; i++) {
      torches[all[i] - records] = got[i];
      refused += got[i].count == -1, lacking += got[i].count == -2, undecided += got[i].undecided;
    }
  }
  for (int d = 0; d < ndevices; d++)
    run_device(d, n);
  look_again();
  for (int i = 0; i < n; i++) {
    seconds += records[i].second;
    net_record_free(&records[i]), net_reference_free(&twins[i]), net_reference_free(&torches[i]);
  }
  programs += n;
}

static void test_networks(void **state) {
  (void)state;
  uint64_t first = getenv("FIRST") ? strtoull(getenv("FIRST"), NULL, 10) : 1;
  int64_t count = getenv("N") ? atoll(getenv("N")) : 240;
  const char *oracle = getenv("ORACLE");
  bool twin = !oracle || !strcmp(oracle, "twin"), torch = !oracle || !strcmp(oracle, "torch");
  setenv("TG_CACHE", "0", 0); /* kernels that nobody asks for again */
  if (torch && !net_has_torch()) {
    print_message("not compared with PyTorch: python3 (or $PYTHON) has none\n");
    if (oracle) skip();
    torch = false;
  }
  for (int64_t at = 0; at < count; at += BATCH) {
    int64_t n = count - at < BATCH ? count - at : BATCH;
    run_batch(first + (uint64_t)at, (int)n, twin, torch);
    if (count > BATCH)
      fprintf(stderr, "%lld programs, %lld wrong, %lld failed, %lld refused\n", (long long)programs,
              (long long)wrong, (long long)failed, (long long)refused);
  }
  net_end();
  for (int i = 0; i < ROWS && rows[i].name && getenv("ROWS"); i++)
    print_message("%6lld %s\n", (long long)rows[i].n, rows[i].name);
  print_message("%lld programs, %lld with second gradients, %lld outside of their dtype's range, %lld that "
                "PyTorch cannot:",
                (long long)programs, (long long)seconds, (long long)undecided, (long long)lacking);
  for (int d = 0; d < ndevices; d++)
    print_message(" %lld on %s (%lld captured)", (long long)devices[d].run, devices[d].name,
                  (long long)devices[d].captured);
  print_message("; %lld values, %.3g times compared within 1 %%\n", (long long)values,
                (double)surely / (double)values);
  if (wrong || failed || refused)
    fail_msg("%lld wrong, %lld failed, %lld refused by PyTorch", (long long)wrong, (long long)failed,
             (long long)refused);
}

static void add_device(const char *name) {
  Device *d = &devices[ndevices++];
  *d = (Device){.every = 1};
  snprintf(d->name, sizeof d->name, "%s", name);
  char *slash = strchr(d->name, '/');
  if (slash) *slash = 0, d->every = atoi(slash + 1) > 0 ? atoi(slash + 1) : 1;
}

int main(int argc, char **argv) {
  static const char *const usual[] = {"INTERP", "INTERP:C/2", "INTERP:CUDA/2", "INTERP:METAL/2", "CPU/16"};
  for (int i = 1; i < argc && i <= DEVICES; i++)
    add_device(argv[i]);
  for (int i = 0; i < 5 && argc == 1; i++)
    add_device(usual[i]);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_networks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
