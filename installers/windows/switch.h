/* Puts a new version in the place of the installed one. See switch.c. */
#include <stdbool.h>
#include <wchar.h>

#define LONGEST 32768
#define NEW_FOLDER L"poolhouse.new" /* the whole new version, beside the files of the installed one */

enum switched { SWITCHED, AS_BEFORE, HALF_DONE };

/* Whether a switch began and has not ended. */
bool switch_began(const wchar_t *folder);

/* Begin a switch to a version, or go on with one that began (version is NULL). AS_BEFORE: the installed version is in its
 * place and works; *held is then what could not be moved. */
enum switched switch_versions(const wchar_t *folder, const char *version, const wchar_t **held);

/* Remove what is left of the version before, and put back what others had put between its files. */
void remove_old_version(const wchar_t *folder);
