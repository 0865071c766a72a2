/* Starts Poolhouse with the Python beside it. Compiled twice: Poolhouse.exe opens the window and has no console;
 * bin\poolhouse.exe (with CONSOLE) is the command for terminals, and ends with the exit code of what it started.
 *
 * Poolhouse.exe also does things for the setup program, which the setup program's language cannot do safely:
 * /link FILE writes the entry of the start menu, with the name by which the taskbar groups windows,
 * /path add FOLDER or /path remove FOLDER changes this user's PATH, however long it is,
 * /switch FOLDER [VERSION] puts a new version in its place (switch.c), or ends a switch that was broken off, and
 * /old FOLDER removes what is left of the version before. */
#define COBJMACROS
#define INITGUID
#include <windows.h>
#include <initguid.h>
#include <objbase.h>
#include <propkey.h>
#include <propvarutil.h>
#include <shellapi.h>
#include <shlobj.h>
#include <stdbool.h>
#include <stdio.h>
#include <wchar.h>

#include "switch.h"

#define APP_ID L"Poolhouse.Poolhouse"
#define UNFINISHED L"\\installing"

static wchar_t folder[LONGEST], line[LONGEST], path[LONGEST];

/* The two sentences that a person can meet here, in the language of Windows. */
static const wchar_t *say(bool interrupted) {
    bool german = PRIMARYLANGID(GetUserDefaultUILanguage()) == LANG_GERMAN;
    if (interrupted)
        return german ? L"Die Installation von Poolhouse wurde unterbrochen: Starte das Setup noch einmal."
                      : L"The installation of Poolhouse was interrupted: run its setup again.";
    return german ? L"Poolhouse kann nicht starten, weil Dateien fehlen: Starte das Setup noch einmal."
                  : L"Poolhouse cannot start because files are missing: run its setup again.";
}

static int refuse(bool interrupted) {
#ifdef CONSOLE
    DWORD written;
    HANDLE err = GetStdHandle(STD_ERROR_HANDLE);
    const wchar_t *text = say(interrupted);
    if (!WriteConsoleW(err, text, (DWORD)wcslen(text), &written, NULL)) {
        char utf8[512];
        int n = WideCharToMultiByte(CP_UTF8, 0, text, -1, utf8, sizeof utf8, NULL, NULL);
        WriteFile(err, utf8, (DWORD)(n - 1), &written, NULL);
    }
    WriteFile(err, "\r\n", 2, &written, NULL);
#else
    MessageBoxW(NULL, say(interrupted), L"Poolhouse", MB_OK | MB_ICONWARNING);
#endif
    return 1;
}

static bool exists(const wchar_t *name) {
    swprintf(path, LONGEST, L"%ls%ls", folder, name);
    return GetFileAttributesW(path) != INVALID_FILE_ATTRIBUTES;
}

/* Whether Poolhouse can start. A switch to a new version that was broken off is ended first. */
static bool is_complete(void) {
    const wchar_t *held;
    if (switch_began(folder) && switch_versions(folder, NULL, &held) == HALF_DONE) return false;
    return !exists(UNFINISHED);
}

/* The installed folder, in which this program lies, or lies one folder deeper. */
static void find_folder(void) {
    GetModuleFileNameW(NULL, folder, LONGEST);
    *wcsrchr(folder, L'\\') = 0;
#ifdef CONSOLE
    *wcsrchr(folder, L'\\') = 0;
#endif
}

/* What follows the program's own name on the command line, unchanged. */
static const wchar_t *arguments(void) {
    const wchar_t *rest = GetCommandLineW();
    bool quoted = false;
    for (; *rest && (quoted || (*rest != L' ' && *rest != L'\t')); rest++)
        if (*rest == L'"') quoted = !quoted;
    while (*rest == L' ' || *rest == L'\t') rest++;
    return rest;
}

#ifdef CONSOLE
static PROCESS_INFORMATION child;

/* Python gets Ctrl-C as well, and decides. When the console closes or the user signs out, this program may go on only
 * while this function runs, and the job ends Python with it: Python gets the time that Windows allows to end in good
 * order. */
static BOOL WINAPI wait_for_python(DWORD event) {
    if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT && child.hProcess) WaitForSingleObject(child.hProcess, INFINITE);
    return TRUE;
}

static int start(void) {
    swprintf(line, LONGEST, L"\"%ls\\python\\python.exe\" -m app %ls", folder, arguments());
    swprintf(path, LONGEST, L"%ls\\python\\python.exe", folder);
    SetConsoleCtrlHandler(wait_for_python, TRUE);
    /* Whoever ends this program ends Python with it, but not what Python started to go on without it. */
    HANDLE job = CreateJobObjectW(NULL, NULL); /* without one, Python runs all the same */
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {0};
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK;
    if (job) SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
    STARTUPINFOW about = {0};
    about.cb = sizeof about;
    if (!CreateProcessW(path, line, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &about, &child)) return refuse(false);
    if (job) AssignProcessToJobObject(job, child.hProcess);
    ResumeThread(child.hThread);
    WaitForSingleObject(child.hProcess, INFINITE);
    DWORD code = 1;
    GetExitCodeProcess(child.hProcess, &code);
    return (int)code;
}

int wmain(void) {
    find_folder();
    return is_complete() ? start() : refuse(true);
}
#else
static int start(void) {
    swprintf(line, LONGEST, L"\"%ls\\python\\pythonw.exe\" -m app %ls", folder, arguments());
    swprintf(path, LONGEST, L"%ls\\python\\pythonw.exe", folder);
    STARTUPINFOW about = {0};
    about.cb = sizeof about;
    about.dwFlags = STARTF_TITLEISAPPID; /* the taskbar knows its windows by this name, not as Python's */
    about.lpTitle = (wchar_t *)APP_ID;
    PROCESS_INFORMATION child;
    if (!CreateProcessW(path, line, NULL, NULL, FALSE, 0, NULL, NULL, &about, &child)) return refuse(false);
    AllowSetForegroundWindow(child.dwProcessId);
    return 0;
}

static int write_link(const wchar_t *file) {
    IShellLinkW *entry;
    IPropertyStore *properties;
    IPersistFile *saved;
    PROPVARIANT name = {0};
    swprintf(path, LONGEST, L"%ls\\Poolhouse.exe", folder);
    if (FAILED(CoInitializeEx(NULL, COINIT_APARTMENTTHREADED)) ||
        FAILED(CoCreateInstance(&CLSID_ShellLink, NULL, CLSCTX_INPROC_SERVER, &IID_IShellLinkW, (void **)&entry)))
        return 2;
    if (FAILED(IShellLinkW_SetPath(entry, path)) || FAILED(IShellLinkW_SetWorkingDirectory(entry, folder))) return 2;
    if (SUCCEEDED(IShellLinkW_QueryInterface(entry, &IID_IPropertyStore, (void **)&properties))) {
        name.vt = VT_LPWSTR;
        name.pwszVal = (wchar_t *)APP_ID;
        IPropertyStore_SetValue(properties, &PKEY_AppUserModel_ID, &name);
        IPropertyStore_Commit(properties);
        IPropertyStore_Release(properties);
    }
    if (FAILED(IShellLinkW_QueryInterface(entry, &IID_IPersistFile, (void **)&saved)) ||
        FAILED(IPersistFile_Save(saved, file, TRUE)))
        return 2;
    return 0;
}

/* The next entry of a list divided by semicolons; NULL after the last. */
static wchar_t *entry_of(wchar_t **rest) {
    wchar_t *begin = *rest, *end;
    if (!begin) return NULL;
    end = wcschr(begin, L';');
    *rest = end ? end + 1 : NULL;
    if (end) *end = 0;
    return begin;
}

static int change_path(bool add, const wchar_t *installed) {
    static wchar_t old[LONGEST], made[LONGEST], ours[LONGEST];
    DWORD n_bytes = sizeof old - sizeof *old, kind = REG_EXPAND_SZ;
    HKEY key;
    wchar_t *rest = old, *entry;
    swprintf(ours, LONGEST, L"%ls\\bin", installed);
    if (RegCreateKeyExW(HKEY_CURRENT_USER, L"Environment", 0, NULL, 0, KEY_READ | KEY_WRITE, NULL, &key, NULL)) return 2;
    LSTATUS found = RegQueryValueExW(key, L"Path", NULL, &kind, (BYTE *)old, &n_bytes);
    if (found && found != ERROR_FILE_NOT_FOUND) return 2; /* such as too long: nothing is changed */
    if (!found && kind != REG_SZ && kind != REG_EXPAND_SZ) return 2;
    if (wcslen(old) + wcslen(ours) + 2 > LONGEST) return 2;
    while ((entry = entry_of(&rest))) {
        if (!*entry || !_wcsicmp(entry, ours)) continue;
        if (*made) wcscat(made, L";");
        wcscat(made, entry);
    }
    if (add) {
        if (*made) wcscat(made, L";");
        wcscat(made, ours);
    }
    LSTATUS written = *made ? RegSetValueExW(key, L"Path", 0, kind, (BYTE *)made, (DWORD)((wcslen(made) + 1) * sizeof *made))
                            : RegDeleteValueW(key, L"Path");
    RegCloseKey(key);
    if (written && written != ERROR_FILE_NOT_FOUND) return 2;
    SendMessageTimeoutW(HWND_BROADCAST, WM_SETTINGCHANGE, 0, (LPARAM)L"Environment", SMTO_ABORTIFHUNG, 1000, NULL);
    return 0;
}

/* Print the part that another program holds, if any. */
static int end_switch(const wchar_t *installed, const wchar_t *version) {
    char ascii[64] = "";
    const wchar_t *held = L"";
    DWORD written;
    if (version) WideCharToMultiByte(CP_UTF8, 0, version, -1, ascii, sizeof ascii, NULL, NULL);
    enum switched result = switch_versions(installed, version ? ascii : NULL, &held);
    if (result != SWITCHED) {
        char name[256];
        int n = WideCharToMultiByte(CP_UTF8, 0, held, -1, name, sizeof name, NULL, NULL);
        if (n > 1) WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), name, (DWORD)(n - 1), &written, NULL);
    }
    return (int)result;
}

int WINAPI wWinMain(HINSTANCE self, HINSTANCE before, wchar_t *given, int show) {
    (void)self, (void)before, (void)given, (void)show;
    int count = 0;
    wchar_t **words = CommandLineToArgvW(GetCommandLineW(), &count);
    find_folder();
    if (words && count == 3 && !wcscmp(words[1], L"/link")) return write_link(words[2]);
    if (words && count == 4 && !wcscmp(words[1], L"/path")) return change_path(!wcscmp(words[2], L"add"), words[3]);
    if (words && count >= 3 && !wcscmp(words[1], L"/switch")) return end_switch(words[2], count > 3 ? words[3] : NULL);
    if (words && count == 3 && !wcscmp(words[1], L"/old")) return remove_old_version(words[2]), 0;
    return is_complete() ? start() : refuse(true);
}
#endif
