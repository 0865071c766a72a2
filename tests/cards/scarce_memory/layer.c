// A Vulkan layer with which a device has no more memory than a file says, in bytes. SCARCE_MEMORY is the file's path.
//
// It counts what this process has allocated on the device. The file is read each time, so a test can let another
// program take memory at any time: then the driver refuses allocations and, as drivers do that have promised too much,
// to compute. Without the file, there is no limit.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*Function)(void);
typedef Function (*GetProc)(void *handle, const char *name);
typedef int32_t (*Create)(void *parent, const void *about, const void *allocator, void **made);
typedef int32_t (*Allocate)(void *device, const void *about, const void *allocator, uint64_t *memory);
typedef void (*Free)(void *device, uint64_t memory, const void *allocator);
typedef int32_t (*Submit)(void *queue, uint32_t count, const void *submits, uint64_t fence);

typedef struct Header { int32_t kind; const struct Header *next; } Header;
typedef struct Link { struct Link *next; GetProc get_instance; GetProc get_device; } Link;
typedef struct { Header header; int32_t function; Link *link; } LoaderInfo;
typedef struct { Header header; uint64_t bytes; uint32_t memory_type; } AllocateInfo;
typedef struct { int32_t kind; void *next; uint32_t version; GetProc get_instance, get_device, get_physical; } Negotiation;

enum { INSTANCE_INFO = 47, DEVICE_INFO = 48, LINK_INFO = 0, OUT_OF_DEVICE_MEMORY = -2, INITIALIZATION_FAILED = -3 };
enum { MOST_ALLOCATIONS = 1 << 16 };

static GetProc next_instance, next_device;
static void *instance, *device;
static struct { uint64_t memory, bytes; } known[MOST_ALLOCATIONS];
static uint64_t used_bytes;

static LoaderInfo *loader_info(const void *about, int32_t kind) {
    for (const Header *one = ((const Header *)about)->next; one; one = one->next)
        if (one->kind == kind && ((const LoaderInfo *)one)->function == LINK_INFO) return (LoaderInfo *)one;
    return NULL;
}

static uint64_t allowed_bytes(void) {
    const char *path = getenv("SCARCE_MEMORY");
    FILE *file = path ? fopen(path, "r") : NULL;
    unsigned long long bytes = UINT64_MAX;
    if (file) {
        if (fscanf(file, "%llu", &bytes) != 1) bytes = UINT64_MAX;
        fclose(file);
    }
    return bytes;
}

static int32_t allocate(void *on, const void *about, const void *allocator, uint64_t *memory) {
    uint64_t bytes = ((const AllocateInfo *)about)->bytes;
    if (used_bytes + bytes > allowed_bytes()) return OUT_OF_DEVICE_MEMORY;
    int32_t result = ((Allocate)next_device(device, "vkAllocateMemory"))(on, about, allocator, memory);
    for (int i = 0; result == 0 && i < MOST_ALLOCATIONS; i++)
        if (!known[i].memory) {
            known[i].memory = *memory;
            known[i].bytes = bytes;
            used_bytes += bytes;
            break;
        }
    return result;
}

static void release(void *on, uint64_t memory, const void *allocator) {
    for (int i = 0; memory && i < MOST_ALLOCATIONS; i++)
        if (known[i].memory == memory) {
            used_bytes -= known[i].bytes;
            known[i].memory = 0;
            break;
        }
    ((Free)next_device(device, "vkFreeMemory"))(on, memory, allocator);
}

static int32_t submit(void *queue, uint32_t count, const void *submits, uint64_t fence) {
    if (used_bytes > allowed_bytes()) return OUT_OF_DEVICE_MEMORY;
    return ((Submit)next_device(device, "vkQueueSubmit"))(queue, count, submits, fence);
}

static Function get_device_proc(void *on, const char *name);
static Function get_instance_proc(void *of, const char *name);

static int32_t create_instance(void *about, const void *allocator, void **made) {
    LoaderInfo *info = loader_info(about, INSTANCE_INFO);
    if (!info) return INITIALIZATION_FAILED;
    next_instance = info->link->get_instance;
    info->link = info->link->next;
    typedef int32_t (*CreateInstance)(const void *, const void *, void **);
    int32_t result = ((CreateInstance)next_instance(NULL, "vkCreateInstance"))(about, allocator, made);
    if (result == 0) instance = *made;
    return result;
}

static int32_t create_device(void *physical, const void *about, const void *allocator, void **made) {
    LoaderInfo *info = loader_info(about, DEVICE_INFO);
    if (!info) return INITIALIZATION_FAILED;
    GetProc get = info->link->get_instance;
    next_device = info->link->get_device;
    info->link = info->link->next;
    int32_t result = ((Create)get(instance, "vkCreateDevice"))(physical, about, allocator, made);
    if (result == 0) device = *made;
    return result;
}

static Function ours(const char *name) {
    static const struct { const char *name; Function function; } all[] = {
        {"vkGetInstanceProcAddr", (Function)get_instance_proc}, {"vkGetDeviceProcAddr", (Function)get_device_proc},
        {"vkCreateInstance", (Function)create_instance},        {"vkCreateDevice", (Function)create_device},
        {"vkAllocateMemory", (Function)allocate},               {"vkFreeMemory", (Function)release},
        {"vkQueueSubmit", (Function)submit},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(name, all[i].name)) return all[i].function;
    return NULL;
}

static Function get_device_proc(void *on, const char *name) {
    Function own = ours(name);
    return own ? own : next_device(on, name);
}

static Function get_instance_proc(void *of, const char *name) {
    Function own = ours(name);
    return own ? own : next_instance ? next_instance(of, name) : NULL;
}

__attribute__((visibility("default"))) int32_t vkNegotiateLoaderLayerInterfaceVersion(Negotiation *about) {
    about->version = 2;
    about->get_instance = get_instance_proc;
    about->get_device = get_device_proc;
    about->get_physical = NULL;
    return 0;
}
