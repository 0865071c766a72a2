/* What llama.cpp needs of Windows' headers and MinGW-w64 10 does not have yet. Included before each of its files. */
#ifndef THREAD_POWER_THROTTLING_CURRENT_VERSION
#define THREAD_POWER_THROTTLING_CURRENT_VERSION 1
#define THREAD_POWER_THROTTLING_EXECUTION_SPEED 1
typedef struct {
    unsigned long Version, ControlMask, StateMask;
} THREAD_POWER_THROTTLING_STATE;
#endif

/* GCC 12 takes the distance between the rows of a tile as a `long`, which has 32 bits on Windows, where an address has
 * 64: its assembler refuses them together. */
#ifdef __AMX_TILE__
#include <immintrin.h>
#undef _tile_loadd_internal
#undef _tile_stored_internal
#define _tile_loadd_internal(tile, rows, distance) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"((const void *)(rows)), "r"((long long)(distance)))
#define _tile_stored_internal(tile, rows, distance) \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"((void *)(rows)), "r"((long long)(distance)) : "memory")
#endif
