/* Preloaded into a host's kernel: getrandom() from a seed.
 *
 * User Mode Linux takes all of its entropy there, for its random-number generator and the numbers
 * of the architecture, so that a host's ports, initial sequence numbers and hash keys repeat.
 * The generator is splitmix64; the seed stands in MILLPOND_SEED.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

ssize_t getrandom(void *buffer, size_t size, unsigned int flags)
{
    static uint64_t state;
    static int is_seeded;
    unsigned char *bytes = buffer;

    (void)flags;
    if (!is_seeded) {
        const char *seed = getenv("MILLPOND_SEED");

        state = seed ? strtoull(seed, NULL, 10) : 0;
        is_seeded = 1;
    }
    for (size_t at = 0; at < size; at++) {
        uint64_t z = state += 0x9e3779b97f4a7c15u;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        bytes[at] = (z ^ (z >> 31)) >> 56;
    }
    return (ssize_t)size;
}
