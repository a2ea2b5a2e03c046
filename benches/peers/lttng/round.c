/* One round of LTTng-UST events with 64 bytes of payload, from one thread. Prints nanoseconds per event: the median of
 * batches, as benches/ring measures its own. To be started by ./round, which sets tracing up: without it, fails. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "events.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCHES = 25, BATCH = 16000 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  uint64_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  double batches[BATCHES];
  if (!lttng_ust_tracepoint_enabled(gputap_bench, record)) {
    fprintf(stderr, "no session records the event gputap_bench:record\n");
    return 1;
  }
  for (int b = 0; b < BATCHES; b++) {
    double start = now_ns();
    for (int i = 0; i < BATCH; i++) {
      words[0] = i;
      lttng_ust_tracepoint(gputap_bench, record, words);
    }
    batches[b] = (now_ns() - start) / BATCH;
  }
  qsort(batches, BATCHES, sizeof *batches, by_size);
  printf("%.2f\n", batches[BATCHES / 2]);
  return 0;
}
