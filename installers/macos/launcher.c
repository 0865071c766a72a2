/* Poolhouse.app/Contents/MacOS/Poolhouse: runs Python inside this process.
 *
 * macOS ties the rights of a program (the local network, the keychain, the name in the Dock) to the executable of its
 * bundle. If this one started Python as another program, all of them would belong to "python3.13". The node, which is
 * the only one to use the network, is a child of this process.
 *
 * Also compiles on Linux, where tests run it with a stand-in for Python.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#define LIBRARY "Resources/python/lib/libpython3.13.dylib"
#else
#include <unistd.h>
#define LIBRARY "Resources/python/lib/libpython3.13.so"
#endif
#define PYTHON "Resources/python/bin/python3.13"
#define MOST_WORDS 1024

typedef int (*python_main)(int, char **);

/* Write the path of this program, without links, into `path`. Return 0 if it is known. */
static int own_path(char *path) {
    char raw[PATH_MAX];
#ifdef __APPLE__
    uint32_t size = sizeof raw;
    if (_NSGetExecutablePath(raw, &size) != 0) return -1;
#else
    ssize_t size = readlink("/proc/self/exe", raw, sizeof raw - 1);
    if (size < 0) return -1;
    raw[size] = '\0';
#endif
    return realpath(raw, path) ? 0 : -1;
}

/* Write Contents/`name` into `path`. Return 0 if it fits. */
static int within(const char *contents, const char *name, char *path) {
    int size = snprintf(path, PATH_MAX, "%s/%s", contents, name);
    return size > 0 && size < PATH_MAX ? 0 : -1;
}

static int fail(const char *why) {
    fprintf(stderr, "Poolhouse could not start: %s. Move it to the Applications folder, or download it again.\n", why);
    return 1;
}

int main(int argc, char **argv) {
    char contents[PATH_MAX], library[PATH_MAX], python[PATH_MAX];
    if (own_path(contents) != 0) return fail("its own folder is unknown");
    for (int up = 0; up < 2; up++) { /* from Contents/MacOS/Poolhouse */
        char *slash = strrchr(contents, '/');
        if (slash == NULL) return fail("it is not in an app bundle");
        *slash = '\0';
    }
    if (within(contents, LIBRARY, library) != 0 || within(contents, PYTHON, python) != 0)
        return fail("the path of its folder is too long");

    char *words[MOST_WORDS + 4];
    int count = 0;
    words[count++] = python; /* by which Python finds its own files, and starts itself again */
    words[count++] = "-m";
    words[count++] = "app";
    for (int n = 1; n < argc && count < MOST_WORDS; n++)
        if (strncmp(argv[n], "-psn_", 5) != 0) words[count++] = argv[n]; /* the Finder's own number of the process */
    words[count] = NULL;

    void *loaded = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (loaded == NULL) return fail(dlerror());
    python_main run;
    *(void **)&run = dlsym(loaded, "Py_BytesMain");
    if (run == NULL) return fail("its Python is damaged");
    return run(count, words);
}
