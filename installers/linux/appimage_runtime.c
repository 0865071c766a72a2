/* The first part of the AppImage: unpacks the file system behind it once per version, and starts the app from there.

   It needs no FUSE, no root and no library of the system. Unpacked versions are kept in the user's cache; older ones
   that no process uses are removed. It understands the options of AppImage's own runtime: --appimage-extract,
   --appimage-offset, --appimage-extract-and-run (which is what it always does) and --appimage-help. */

#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <squashfuse/squashfuse.h>

/* libsquashfuse names four compressions; our images use zstd alone, and LZO is under the GPL. */
int lzo1x_decompress_safe(void) { return -1; }
int LZ4_decompress_safe(void) { return -1; }
int lzma_stream_buffer_decode(void) { return -1; }
int uncompress(void) { return -1; }

#define CACHE "poolhouse-appimage"
#define MARGIN_BYTES (64ULL << 20)
#define CHUNK (1 << 20)
#define NO_PROGRAM 127 /* as shells say it */

static char folder_of_caches[PATH_MAX], place[PATH_MAX], part[PATH_MAX];

/* Show a sentence on the screen, with the first of the desktop's own programs that is installed. */
static void show(char *sentence) {
    char *dialogs[][6] = {{"zenity", "--error", "--title=Poolhouse", "--no-markup", "--text", sentence},
                          {"kdialog", "--title", "Poolhouse", "--error", sentence},
                          {"xmessage", "-center", sentence},
                          {"notify-send", "Poolhouse", sentence}};
    for (size_t n = 0; n < sizeof dialogs / sizeof *dialogs; n++) {
        char *words[7] = {0};
        int status = 0;
        memcpy(words, dialogs[n], sizeof dialogs[n]);
        pid_t child = fork();
        if (!child) {
            execvp(words[0], words);
            _exit(NO_PROGRAM);
        }
        if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) != NO_PROGRAM) return;
    }
}

/* Say why it does not start: on the terminal and, after a double click, which has none, on the screen. */
static void fail(const char *format, ...) {
    static char sentence[3 * PATH_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof sentence, format, list);
    va_end(list);
    fprintf(stderr, "%s\n", sentence);
    if (!isatty(STDERR_FILENO) && (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY"))) show(sentence);
    exit(1);
}

static void join(char *into, const char *first, const char *second) {
    if (snprintf(into, PATH_MAX, "%s/%s", first, second) >= PATH_MAX) fail("The path %s is too long.", first);
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *walk) {
    (void)about, (void)kind, (void)walk;
    return remove(path) && errno != ENOENT ? -1 : 0;
}

static void remove_tree(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

/* The file system begins where the ELF file ends: after its table of sections. */
static size_t payload_offset(int file) {
    Elf64_Ehdr head;
    if (pread(file, &head, sizeof head, 0) != sizeof head) fail("This AppImage cannot be read: %s.", strerror(errno));
    return head.e_shoff + (size_t)head.e_shentsize * head.e_shnum;
}

static void write_file(sqfs *fs, sqfs_inode *inode, const char *path) {
    static char bytes[CHUNK];
    int out = open(path, O_WRONLY | O_CREAT | O_EXCL, inode->base.mode & 07777);
    if (out < 0) { remove_tree(part); fail("Poolhouse could not be unpacked into %s: %s.", part, strerror(errno)); }
    for (sqfs_off_t at = 0; at < (sqfs_off_t)inode->xtra.reg.file_size;) {
        sqfs_off_t size = CHUNK;
        if (sqfs_read_range(fs, inode, at, &size, bytes) || size <= 0) {
            remove_tree(part);
            fail("This AppImage is damaged: %s cannot be read. Download it again.", path);
        }
        for (sqfs_off_t done = 0; done < size;) {
            ssize_t n = write(out, bytes + done, size - done);
            if (n <= 0) { remove_tree(part); fail("Poolhouse could not be unpacked into %s: %s.", part, strerror(errno)); }
            done += n;
        }
        at += size;
    }
    close(out);
}

static void unpack(int file, size_t offset, const char *target) {
    sqfs fs;
    sqfs_inode root, inode;
    sqfs_traverse walk;
    sqfs_err error = SQFS_OK;
    char path[PATH_MAX], link[PATH_MAX];
    if (sqfs_init(&fs, file, offset) || sqfs_inode_get(&fs, &root, sqfs_inode_root(&fs)) ||
        sqfs_traverse_open_inode(&walk, &fs, &root))
        fail("This AppImage is damaged. Download it again.");
    if (mkdir(target, 0755) && errno != EEXIST) fail("The folder %s cannot be created: %s.", target, strerror(errno));
    while (sqfs_traverse_next(&walk, &error)) {
        if (walk.dir_end) continue;
        join(path, target, walk.path);
        if (sqfs_inode_get(&fs, &inode, walk.entry.inode)) { error = SQFS_ERR; break; }
        if (S_ISDIR(inode.base.mode)) {
            if (mkdir(path, 0755)) { remove_tree(part); fail("The folder %s cannot be created: %s.", path, strerror(errno)); }
        } else if (S_ISLNK(inode.base.mode)) {
            size_t size = sizeof link;
            if (sqfs_readlink(&fs, &inode, link, &size) || symlink(link, path)) { error = SQFS_ERR; break; }
        } else {
            write_file(&fs, &inode, path);
        }
        struct timespec times[2] = {{.tv_sec = inode.base.mtime}, {.tv_sec = inode.base.mtime}};
        utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
    }
    if (error) { remove_tree(target); fail("This AppImage is damaged. Download it again."); }
    sqfs_traverse_close(&walk);
    sqfs_destroy(&fs);
}

/* Whether a process of this user runs a program in a folder. */
static int in_use(const char *folder) {
    char path[PATH_MAX], program[PATH_MAX];
    size_t length = strlen(folder);
    int used = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *entry; all && !used && (entry = readdir(all));) {
        snprintf(path, sizeof path, "/proc/%s/exe", entry->d_name);
        ssize_t n = readlink(path, program, sizeof program - 1);
        used = n > (ssize_t)length && !strncmp(program, folder, length) && program[length] == '/';
    }
    if (all) closedir(all);
    return used;
}

static void remove_older(void) {
    char path[PATH_MAX];
    DIR *all = opendir(folder_of_caches);
    for (struct dirent *entry; all && (entry = readdir(all));) {
        if (entry->d_name[0] == '.' || entry->d_type != DT_DIR || !strcmp(entry->d_name, BUILD_ID)) continue;
        join(path, folder_of_caches, entry->d_name);
        if (!in_use(path)) remove_tree(path);
    }
    if (all) closedir(all);
}

/* Choose the user's cache, or a private folder in /tmp where the home cannot be written. */
static void choose_folder(void) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    struct stat about;
    if (cache && cache[0] == '/') join(folder_of_caches, cache, CACHE);
    else {
        char base[PATH_MAX];
        join(base, home && home[0] == '/' ? home : "/nonexistent", ".cache");
        mkdir(base, 0700);
        join(folder_of_caches, base, CACHE);
    }
    if (!mkdir(folder_of_caches, 0700) || (errno == EEXIST && !access(folder_of_caches, W_OK))) return;
    snprintf(folder_of_caches, PATH_MAX, "/tmp/" CACHE "-%u", (unsigned)getuid());
    if (mkdir(folder_of_caches, 0700) && errno != EEXIST)
        fail("Poolhouse needs a folder to unpack itself, and neither your home nor /tmp can be written.");
    if (lstat(folder_of_caches, &about) || !S_ISDIR(about.st_mode) || about.st_uid != getuid() || about.st_mode & 077)
        fail("The folder %s belongs to somebody else. Remove it, or set XDG_CACHE_HOME.", folder_of_caches);
}

static void unpack_once(int file, size_t offset) {
    char lock_name[PATH_MAX];
    struct statvfs disk;
    choose_folder();
    join(place, folder_of_caches, BUILD_ID);
    join(part, folder_of_caches, BUILD_ID ".part");
    join(lock_name, folder_of_caches, ".lock");
    int lock = open(lock_name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX)) fail("The folder %s cannot be locked: %s.", folder_of_caches, strerror(errno));
    if (access(place, F_OK)) {
        remove_tree(part);
        remove_older();
        if (!statvfs(folder_of_caches, &disk)) {
            unsigned long long free_bytes = (unsigned long long)disk.f_bavail * disk.f_frsize;
            if (free_bytes < UNPACKED_BYTES + MARGIN_BYTES)
                fail("Poolhouse needs %llu MiB of disk space in %s to unpack itself, and %llu MiB are free.",
                     (unsigned long long)(UNPACKED_BYTES + MARGIN_BYTES) >> 20, folder_of_caches, free_bytes >> 20);
        }
        unpack(file, offset, part);
        if (rename(part, place)) fail("The folder %s cannot be renamed: %s.", part, strerror(errno));
    }
    close(lock);
}

int main(int count, char **words) {
    char program[PATH_MAX], start[PATH_MAX], here[PATH_MAX];
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (file < 0 || n < 0) fail("This AppImage cannot be read: %s.", strerror(errno));
    program[n] = 0;
    size_t offset = payload_offset(file);
    if (count > 1 && !strcmp(words[1], "--appimage-offset")) return printf("%zu\n", offset) < 0;
    if (count > 1 && !strcmp(words[1], "--appimage-help"))
        return puts("--appimage-extract    unpack into ./squashfs-root\n"
                    "--appimage-offset     print where the file system begins\n"
                    "Poolhouse unpacks itself into the user's cache when it first starts, and needs no FUSE.") < 0;
    if (count > 1 && !strcmp(words[1], "--appimage-extract")) {
        umask(022);
        strcpy(part, "squashfs-root");
        unpack(file, offset, part);
        return 0;
    }
    if (count > 1 && !strcmp(words[1], "--appimage-extract-and-run")) {
        memmove(words + 1, words + 2, (count - 1) * sizeof *words);
    }
    mode_t mask = umask(022);
    unpack_once(file, offset);
    umask(mask);
    setenv("APPIMAGE", program, 1);
    setenv("APPDIR", place, 1);
    setenv("ARGV0", words[0], 1);
    if (getcwd(here, sizeof here)) setenv("OWD", here, 1);
    join(start, place, "AppRun");
    words[0] = start;
    execv(start, words);
    fail("%s cannot be started: %s. If %s is mounted with noexec, set XDG_CACHE_HOME to another folder.", start,
         strerror(errno), folder_of_caches);
}
