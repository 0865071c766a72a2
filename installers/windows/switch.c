/* Puts a new version in the place of the installed one by renaming, so that an update that is killed leaves a version that
 * works. The setup program unpacks the new version into NEW_FOLDER, in which nothing of the installed one changes. Then
 * each part (a file or folder at the top, and each file of bin) is moved: the old one to OLD_FOLDER, the new one to its
 * place. MARK is there from the first move to the last: whoever starts Poolhouse then ends the switch first, wherever it
 * was broken off. What has been moved shows from what is still in NEW_FOLDER. If something cannot be moved, all that was
 * moved goes back.
 *
 * Files of others between ours travel to OLD_FOLDER and come back when the old version is removed. */
#include "switch.h"

#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#define OLD_FOLDER L"poolhouse.old"
#define MARK L"poolhouse.switch"
#define FILE_LIST L"files.txt"
#define COMMANDS L"bin\\" /* a folder of which a file can run and must be replaced all the same */
#define STARTER L"Poolhouse.exe"
#define UNFINISHED L"installing"
#define UNINSTALL_KEY L"Software\\Microsoft\\Windows\\CurrentVersion\\Uninstall\\Poolhouse"

enum { MOST_PARTS = 64, MOST_NAME = 64, TRIES = 100, PAUSE_MS = 100, VERSION_BYTES = 64 };

struct parts {
    int n;
    bool too_many;
    wchar_t names[MOST_PARTS][MOST_NAME];
};

static wchar_t *join(const wchar_t *folder, const wchar_t *name) {
    size_t n = wcslen(folder) + wcslen(name) + 2;
    wchar_t *made = malloc(n * sizeof *made);
    if (!made) exit(2);
    swprintf(made, n, L"%ls\\%ls", folder, name);
    return made;
}

static bool is_there(const wchar_t *folder, const wchar_t *name) {
    wchar_t *path = join(folder, name);
    bool found = GetFileAttributesW(path) != INVALID_FILE_ATTRIBUTES;
    free(path);
    return found;
}

static bool is_among(const struct parts *parts, const wchar_t *name) {
    for (int i = 0; i < parts->n; i++)
        if (!_wcsicmp(parts->names[i], name)) return true;
    return false;
}

static void add(struct parts *parts, const wchar_t *name) {
    if (is_among(parts, name)) return;
    if (parts->n == MOST_PARTS || wcslen(name) >= MOST_NAME) parts->too_many = true;
    else wcscpy(parts->names[parts->n++], name);
}

/* Return the text of a list of files, or NULL. Each line is a sign (F file, C folder with compiled files, D folder), a
 * space, a name and a line feed, in UTF-16. */
static wchar_t *read_list(const wchar_t *folder) {
    wchar_t *path = join(folder, FILE_LIST), *text = NULL;
    HANDLE file = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
    free(path);
    if (file == INVALID_HANDLE_VALUE) return NULL;
    DWORD n_bytes = GetFileSize(file, NULL), n_read = 0;
    if (n_bytes != INVALID_FILE_SIZE && (text = calloc(n_bytes / sizeof *text + 1, sizeof *text)))
        if (!ReadFile(file, text, n_bytes, &n_read, NULL) || n_read != n_bytes) free(text), text = NULL;
    CloseHandle(file);
    return text;
}

/* Return the next line of a list, cut off from the rest, or NULL after the last. */
static wchar_t *next_line(wchar_t **rest) {
    wchar_t *line = *rest, *end = line ? wcschr(line, L'\n') : NULL;
    if (!end) return NULL;
    *end = 0;
    *rest = end + 1;
    return wcslen(line) > 2 ? line : next_line(rest);
}

/* Add the parts that a folder's list names. Return whether there is a list. */
static bool add_listed(struct parts *parts, const wchar_t *folder) {
    wchar_t *text = read_list(folder), *rest = text, *line;
    while ((line = next_line(&rest))) {
        wchar_t *name = line + 2;
        bool is_command = !_wcsnicmp(name, COMMANDS, wcslen(COMMANDS));
        if (*line == L'F' ? is_command || !wcschr(name, L'\\') : *line == L'D' && !wcschr(name, L'\\'))
            if (_wcsicmp(name, L"bin")) add(parts, name); /* the folder itself stays */
    }
    free(text);
    return text != NULL;
}

/* Move a file or folder. A virus scanner holds new files for moments. */
static bool move(const wchar_t *from, const wchar_t *to, const wchar_t *name, DWORD flags, int tries) {
    wchar_t *source = join(from, name), *target = join(to, name);
    if (!_wcsnicmp(name, COMMANDS, wcslen(COMMANDS))) {
        wchar_t *bin = join(to, L"bin");
        CreateDirectoryW(bin, NULL);
        free(bin);
    }
    bool moved = MoveFileExW(source, target, flags);
    while (!moved && --tries > 0) {
        Sleep(PAUSE_MS);
        moved = MoveFileExW(source, target, flags);
    }
    free(source), free(target);
    return moved;
}

struct places {
    const wchar_t *folder;
    wchar_t *new, *old;
};

/* Put one part of the new version in its place. */
static bool forward(const struct places *at, const wchar_t *name, bool is_new) {
    if (is_new && !is_there(at->new, name)) return true; /* it was moved before */
    if (!_wcsicmp(name, STARTER) && move(at->new, at->folder, name, MOVEFILE_REPLACE_EXISTING, 1)) return true;
    if (is_there(at->folder, name) && !move(at->folder, at->old, name, 0, TRIES)) return false;
    return !is_new || move(at->new, at->folder, name, 0, TRIES);
}

/* Put one part of the old version back. */
static bool backward(const struct places *at, const wchar_t *name, bool is_new) {
    if (is_new && !is_there(at->new, name) && is_there(at->folder, name) && !move(at->folder, at->new, name, 0, TRIES))
        return false;
    return !is_there(at->old, name) || is_there(at->folder, name) || move(at->old, at->folder, name, 0, TRIES);
}

/* Put all parts of the old version back. */
static enum switched move_back(const struct places *at, const struct parts *all, int n_new) {
    bool back = backward(at, FILE_LIST, true);
    for (int i = 0; i < all->n; i++) back = backward(at, all->names[i], i < n_new) && back;
    return back ? AS_BEFORE : HALF_DONE;
}

/* Move all parts, or none. */
static enum switched move_all(const struct places *at, const wchar_t **held) {
    static struct parts all;
    all.n = 0, all.too_many = false;
    bool is_listed = add_listed(&all, at->new) || add_listed(&all, at->folder); /* the list may have been moved already */
    add(&all, L"uninstall.exe");
    int n_new = all.n;
    if (!is_there(at->new, FILE_LIST) || !add_listed(&all, at->folder)) add_listed(&all, at->old);
    *held = FILE_LIST;
    if (!is_listed || all.too_many) return AS_BEFORE; /* so nothing was moved before either */
    for (int i = 0; i < all.n; i++) {
        const wchar_t *name = all.names[i];
        if (!_wcsicmp(name, STARTER) || forward(at, name, i < n_new)) continue;
        *held = name;
        return move_back(at, &all, n_new);
    }
    if (!forward(at, FILE_LIST, true)) return move_back(at, &all, n_new);
    *held = STARTER; /* comes last: it can end a switch */
    return forward(at, STARTER, true) ? SWITCHED : move_back(at, &all, n_new);
}

/* Write the version into Windows' list of programs, if Poolhouse is there. */
static void tell_windows(const char *version) {
    HKEY key;
    if (RegOpenKeyExW(HKEY_CURRENT_USER, UNINSTALL_KEY, 0, KEY_WRITE, &key)) return;
    if (*version) RegSetValueExA(key, "DisplayVersion", 0, REG_SZ, (const BYTE *)version, (DWORD)strlen(version) + 1);
    RegCloseKey(key);
}

/* Write the mark with the version in it, which outlives a loss of power from here on. */
static bool write_mark(const wchar_t *path, const char *version) {
    DWORD n_bytes;
    HANDLE file = CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, FILE_FLAG_WRITE_THROUGH, NULL);
    if (file == INVALID_HANDLE_VALUE) return false;
    bool written = WriteFile(file, version, (DWORD)strlen(version), &n_bytes, NULL);
    return CloseHandle(file) && written;
}

static void read_mark(const wchar_t *path, char version[VERSION_BYTES]) {
    DWORD n_bytes = 0;
    HANDLE file = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
    if (file != INVALID_HANDLE_VALUE) {
        if (!ReadFile(file, version, VERSION_BYTES - 1, &n_bytes, NULL)) n_bytes = 0;
        CloseHandle(file);
    }
    version[n_bytes] = 0;
}

bool switch_began(const wchar_t *folder) { return is_there(folder, MARK); }

enum switched switch_versions(const wchar_t *folder, const char *version, const wchar_t **held) {
    struct places at = {folder, join(folder, NEW_FOLDER), join(folder, OLD_FOLDER)};
    wchar_t *mark = join(folder, MARK), *unfinished = join(folder, UNFINISHED), *bin = join(at.new, L"bin");
    char made[VERSION_BYTES];
    enum switched result = AS_BEFORE;
    HANDLE turn = CreateMutexW(NULL, FALSE, L"Local\\PoolhouseSwitch");
    if (turn) WaitForSingleObject(turn, INFINITE);
    SetCurrentDirectoryW(folder); /* a folder in which a program works cannot be moved */
    if (version && !is_there(folder, MARK)) {
        remove_old_version(folder);
        write_mark(mark, version);
    }
    if (is_there(folder, MARK)) { /* otherwise another program ended the switch while this one waited */
        read_mark(mark, made);
        CreateDirectoryW(at.old, NULL);
        result = move_all(&at, held);
        if (result == SWITCHED) {
            tell_windows(made);
            DeleteFileW(unfinished);
        }
        if (result != HALF_DONE) DeleteFileW(mark);
        if (result == SWITCHED) {
            RemoveDirectoryW(bin);
            RemoveDirectoryW(at.new);
        }
        if (result != HALF_DONE) remove_old_version(folder);
    } else {
        *held = MARK;
    }
    if (turn) ReleaseMutex(turn), CloseHandle(turn);
    free(mark), free(unfinished), free(bin), free(at.new), free(at.old);
    return result;
}

/* Delete the compiled files beside the sources of a folder. */
static void delete_compiled(const wchar_t *folder) {
    wchar_t *cache = join(folder, L"__pycache__"), *pattern = join(cache, L"*.pyc");
    WIN32_FIND_DATAW found;
    HANDLE search = FindFirstFileW(pattern, &found);
    if (search != INVALID_HANDLE_VALUE) {
        do {
            wchar_t *path = join(cache, found.cFileName);
            DeleteFileW(path);
            free(path);
        } while (FindNextFileW(search, &found));
        FindClose(search);
    }
    RemoveDirectoryW(cache);
    free(cache), free(pattern);
}

/* Move the files of a folder, which are not ours, to another. What the new version has too stays the new version's. */
static void bring_back(const wchar_t *from, const wchar_t *to) {
    wchar_t *pattern = join(from, L"*");
    WIN32_FIND_DATAW found;
    HANDLE search = FindFirstFileW(pattern, &found);
    free(pattern);
    if (search == INVALID_HANDLE_VALUE) return;
    do {
        if (!wcscmp(found.cFileName, L".") || !wcscmp(found.cFileName, L"..")) continue;
        wchar_t *source = join(from, found.cFileName), *target = join(to, found.cFileName);
        if (!MoveFileExW(source, target, 0)) { /* it is there already */
            bool is_folder = found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
            bool is_link = found.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT;
            if (is_folder && !is_link) bring_back(source, target);
            if (!is_folder && GetFileAttributesW(target) != INVALID_FILE_ATTRIBUTES) DeleteFileW(source);
        }
        free(source), free(target);
    } while (FindNextFileW(search, &found));
    FindClose(search);
    RemoveDirectoryW(from);
}

void remove_old_version(const wchar_t *folder) {
    wchar_t *old = join(folder, OLD_FOLDER), *text = read_list(old), *rest = text, *line;
    while ((line = next_line(&rest))) {
        wchar_t *path = join(old, line + 2);
        if (*line == L'F') DeleteFileW(path);
        if (*line == L'C') delete_compiled(path);
        if (*line == L'D') RemoveDirectoryW(path);
        free(path);
    }
    free(text);
    bring_back(old, folder);
    free(old);
}
