// Which way of switching activity kinds on and off does CUPTI survive? An injection shim that does it in one of several ways.
//
//   ALWAYS   activity kinds that stay on (comma-separated numbers)         e.g. 1,2
//   SWITCHED activity kinds that are switched off and on in turns          e.g. 10,1,2
//   PERIOD_MS  between two switches (default 40)
//   FLUSH    letters: p periodically (every 10 ms) while on, o while off too, b before switching off, a after it,
//            f forced before switching off
//   LEAVE=1  instead of switching kinds: unsubscribe and finalize, then subscribe and enable again
//   BARE=1   subscribe without registering for buffers
//   ONCE=n   stop switching after n switches (default: never)
//   NULL_EVERY=n  every nth request for a buffer gets none
//   DELAY_MS before the first switch (default 0: before the first context)
//   TOGGLE_LOG  a file for "<monotonic ns> <on 0|1>" lines, as paired.py reads them
//
// Build: gcc -O2 -fPIC -shared -I$CUDA_HOME/include switch_probe.c -o switch_probe.so -L$CUPTI_DIR -lcupti -lpthread
#define _GNU_SOURCE
#include <cupti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_BYTES = 128 << 10 };
static int always[8], switched[8], always_n, switched_n, period_ms, delay_ms, leave;
static FILE *toggle_log;
static long once;
static const char *flush;
static CUpti_SubscriberHandle subscriber;
static atomic_ulong kernels, others, dropped, refused, requests, switches;
static unsigned long null_every;
static atomic_int stopping, stopped;

static unsigned long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ul + t.tv_nsec;
}

static int parse(const char *text, int *to) {
  int n = 0;
  for (char *copy = strdup(text ? text : ""), *word; n < 8 && (word = strsep(&copy, ",")); )
    if (*word) to[n++] = atoi(word);
  return n;
}

static void CUPTIAPI on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {}

static void CUPTIAPI on_requested(uint8_t **buffer, size_t *size, size_t *max_records) {
  *max_records = 0;
  if (null_every && ++requests % null_every == 0) {
    *size = 0;
    *buffer = NULL;
    refused++;
    return;
  }
  *size = BUFFER_BYTES;
  *buffer = aligned_alloc(4096, BUFFER_BYTES);
}

static void CUPTIAPI on_completed(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  CUpti_Activity *record = NULL;
  while (valid && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    *(record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ? &kernels : &others) += 1;
  size_t n = 0;
  if (cuptiActivityGetNumDroppedRecords(ctx, stream, &n) == CUPTI_SUCCESS) dropped += n;
  free(buffer);
}

static void set(const int *kinds, int n, int on) {
  for (int i = 0; i < n; i++) on ? cuptiActivityEnable(kinds[i]) : cuptiActivityDisable(kinds[i]);
}

static int enter(void) {
  if (cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)on_callback, NULL)) return 0;
  cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED);
  if (!getenv("BARE")) cuptiActivityRegisterCallbacks(on_requested, on_completed);
  set(always, always_n, 1);
  return 1;
}

static int has(char c) { return strchr(flush, c) != NULL; }

static void *timer(void *unused) {
  int on = 0;
  for (int ms = 0; ms < delay_ms && !stopping; ms += 10) usleep(10000);
  while (!stopping) {
    if (!once || switches < (unsigned long)once) {
      on = !on;
      if (leave) {
        if (on) enter(), set(switched, switched_n, 1);
        else cuptiUnsubscribe(subscriber), cuptiFinalize();
      } else {
        if (!on && has('b')) cuptiActivityFlushAll(0);
        if (!on && has('f')) cuptiActivityFlushAll(1);
        set(switched, switched_n, on);
        if (!on && has('a')) cuptiActivityFlushAll(0);
      }
      switches++;
      if (toggle_log) fprintf(toggle_log, "%lu %d\n", now_ns(), on), fflush(toggle_log);
    }
    for (int ms = 0; ms < period_ms && !stopping; ms += 10) {
      usleep(10000);
      if ((on && has('p')) || (!on && has('o'))) cuptiActivityFlushAll(0);
    }
  }
  stopped = 1;
  return NULL;
}

static void report(void) {
  stopping = 1;
  for (int i = 0; i < 1000 && !stopped; i++) usleep(1000);
  cuptiActivityFlushAll(0);
  cuptiActivityFlushAll(1);
  fprintf(stderr, "switch probe: switches=%lu kernels=%lu others=%lu dropped=%lu refused=%lu\n", switches, kernels, others,
          dropped, refused);
}

int InitializeInjection(void) {
  static atomic_int begun;
  if (atomic_exchange(&begun, 1)) return 1;
  always_n = parse(getenv("ALWAYS"), always);
  switched_n = parse(getenv("SWITCHED"), switched);
  period_ms = getenv("PERIOD_MS") ? atoi(getenv("PERIOD_MS")) : 40;
  flush = getenv("FLUSH") ? getenv("FLUSH") : "";
  null_every = getenv("NULL_EVERY") ? strtoul(getenv("NULL_EVERY"), NULL, 10) : 0;
  delay_ms = getenv("DELAY_MS") ? atoi(getenv("DELAY_MS")) : 0;
  if (getenv("TOGGLE_LOG")) toggle_log = fopen(getenv("TOGGLE_LOG"), "w");
  fprintf(stderr, "switch probe begins at %lu ms\n", now_ns() / 1000000);
  leave = getenv("LEAVE") != NULL;
  once = getenv("ONCE") ? atol(getenv("ONCE")) : 0;
  if (!leave && !enter()) return 1;
  atexit(report);
  pthread_t thread;
  pthread_create(&thread, NULL, timer, NULL);
  return 1;
}
