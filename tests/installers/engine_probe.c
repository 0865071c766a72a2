/* Loads the engine as the app does on Windows (backends/llamacpp/binding.py), and prints the tokens that a model answers
 * with: engine_probe FOLDER VARIANT MODEL PROMPT COUNT. The same source is compiled for Linux and Windows, so that their
 * tokens can be compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama.h"

#ifdef _WIN32
#include <windows.h>
#define ENDING ".dll"
#define START ""
#define LLAMA "libllama" /* llama.cpp leaves out the first letters of only some names */
#else
#include <dlfcn.h>
#define ENDING ".so"
#define START "lib"
#define LLAMA "llama"
#endif

enum { PATH_BYTES = 4096, MOST_TOKENS = 512 };

/* The libraries stay loaded: the process ends soon. */
static void *library(const char *folder, const char *name) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/" START "%s" ENDING, folder, name);
#ifdef _WIN32
    wchar_t wide[PATH_BYTES];
    MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, PATH_BYTES);
    for (wchar_t *sign = wide; *sign; sign++)
        if (*sign == L'/') *sign = L'\\';
    void *found = (void *)LoadLibraryExW(wide, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
    if (!found) fprintf(stderr, "%s: error %lu\n", path, GetLastError());
#else
    void *found = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!found) fprintf(stderr, "%s\n", dlerror());
#endif
    if (!found) exit(2);
    return found;
}

static void *function(void *from, const char *name) {
#ifdef _WIN32
    void *found = (void *)GetProcAddress((HMODULE)from, name);
#else
    void *found = dlsym(from, name);
#endif
    if (!found) {
        fprintf(stderr, "no function %s\n", name);
        exit(3);
    }
    return found;
}

static void quiet(enum ggml_log_level level, const char *text, void *data) {
    (void)data;
    if (level >= GGML_LOG_LEVEL_WARN) fputs(text, stderr);
}

#define GET(from, name) __typeof__(&name) f_##name = (__typeof__(&name))function(from, #name)

static int probe(const char *folder, const char *variant, const char *file, const char *prompt, int count) {
    library(folder, "ggml-base");
    void *ggml = library(folder, "ggml");
    void *llama = library(folder, LLAMA);
    void (*add)(void *) = (void (*)(void *))function(ggml, "ggml_backend_register");
    GET(llama, llama_log_set);
    GET(llama, llama_backend_init);
    GET(llama, llama_model_default_params);
    GET(llama, llama_model_load_from_file);
    GET(llama, llama_model_get_vocab);
    GET(llama, llama_context_default_params);
    GET(llama, llama_init_from_model);
    GET(llama, llama_tokenize);
    GET(llama, llama_batch_get_one);
    GET(llama, llama_decode);
    GET(llama, llama_get_logits_ith);
    GET(llama, llama_vocab_n_tokens);
    f_llama_log_set(quiet, NULL);
    char backend[PATH_BYTES];
    snprintf(backend, sizeof backend, "ggml-cpu-%s", variant);
    void *processor = library(folder, backend);
    int (*score)(void) = (int (*)(void))function(processor, "ggml_backend_score");
    if (!score()) {
        printf("does not run here\n");
        return 0;
    }
    void *(*init)(void) = (void *(*)(void))function(processor, "ggml_backend_init");
    add(init());
    f_llama_backend_init();
    struct llama_model *model = f_llama_model_load_from_file(file, f_llama_model_default_params());
    if (!model) return 4;
    struct llama_context_params wanted = f_llama_context_default_params();
    wanted.n_ctx = 512;
    wanted.n_threads = wanted.n_threads_batch = 2;
    struct llama_context *context = f_llama_init_from_model(model, wanted);
    if (!context) return 5;
    const struct llama_vocab *vocab = f_llama_model_get_vocab(model);
    llama_token tokens[MOST_TOKENS];
    int n = f_llama_tokenize(vocab, prompt, (int)strlen(prompt), tokens, MOST_TOKENS, true, true);
    if (n <= 0) return 6;
    int n_vocab = f_llama_vocab_n_tokens(vocab);
    struct llama_batch batch = f_llama_batch_get_one(tokens, n);
    llama_token next;
    for (int step = 0; step < count; step++) {
        if (f_llama_decode(context, batch)) return 7;
        const float *logits = f_llama_get_logits_ith(context, -1);
        next = 0;
        for (int token = 1; token < n_vocab; token++)
            if (logits[token] > logits[next]) next = token;
        printf(step ? " %d" : "%d", next);
        batch = f_llama_batch_get_one(&next, 1);
    }
    printf("\n");
    return 0;
}

#ifdef _WIN32
int wmain(int count, wchar_t **words) {
    static char utf8[6][PATH_BYTES];
    if (count != 6) return 1;
    for (int index = 1; index < 6; index++)
        WideCharToMultiByte(CP_UTF8, 0, words[index], -1, utf8[index], PATH_BYTES, NULL, NULL);
    return probe(utf8[1], utf8[2], utf8[3], utf8[4], atoi(utf8[5]));
}
#else
int main(int count, char **words) {
    if (count != 6) return 1;
    return probe(words[1], words[2], words[3], words[4], atoi(words[5]));
}
#endif
