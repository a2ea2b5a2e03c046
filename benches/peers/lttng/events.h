/* The one event: 64 bytes of payload. Included several times by LTTng's own headers. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER gputap_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "events.h"

#if !defined(GPUTAP_BENCH_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define GPUTAP_BENCH_EVENTS_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(gputap_bench, record, LTTNG_UST_TP_ARGS(const uint64_t *, words),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_array(uint64_t, words, words, 8)))

#endif

#include <lttng/tracepoint-event.h>
